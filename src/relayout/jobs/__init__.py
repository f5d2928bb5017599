"""One module per verb: facts, plan, run, commit, report, joined from the rooms."""
