"""`python -m relayout`: the same door as the `relayout` command."""

import sys

from relayout.cli import main

if __name__ == "__main__":
    sys.exit(main())
