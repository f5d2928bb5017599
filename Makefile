# Everything this project does, from a machine that has Python 3.11 or newer and nothing else.

VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.run
DEV := $(VENV)/.dev
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

# The versions in requirements/ were resolved for 3.11; newer ones work too. Choose another with `make PYTHON=…`.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$p"; break; }; done)

# Tests that need no engine.
FAST := $(wildcard tests/unit tests/golden tests/house)
CODE := $(wildcard src tests docs bench crosscheck)

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup demo test check format docs bench crosscheck faults lock clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

setup: $(DEV) ## make .venv with everything that development needs

demo: $(RUN) ## the whole story on generated data, in about a minute
	rm -rf build/demo && mkdir -p build
	$(BIN)/relayout demo build/demo

test: $(DEV) ## every test
	$(BIN)/python -m pytest

check: $(DEV) ## format, lint, types and the tests that need no engine; under a minute
	$(BIN)/python -m ruff format --check $(CODE)
	$(BIN)/python -m ruff check $(CODE)
	$(BIN)/python -m mypy
	$(BIN)/python -m pytest --quiet $(FAST)

format: $(DEV) ## rewrite the code in the project's format
	$(BIN)/python -m ruff check --fix-only $(CODE)
	$(BIN)/python -m ruff format $(CODE)

docs: $(DEV) ## write the reference pages from the code
	$(BIN)/python -m docs

bench: $(DEV) ## measure against the peers and render the performance page
	$(BIN)/python -m bench

crosscheck: $(DEV) ## let other engines and services judge the tables
	$(BIN)/python -m crosscheck

faults: $(DEV) ## kill and cut off at every commit step, the long profile
	RELAYOUT_FAULTS=long $(BIN)/python -m pytest tests/faults

# Hash-locked and without addresses. The run set takes the versions of the development set, which holds it.
COMPILE = build/lock/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --no-strip-extras --no-header \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --no-emit-options --build-deps-for editable
lock: ## resolve requirements/ anew from pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make lock PYTHON=…" >&2; exit 2; }
	test -x build/lock/bin/pip-compile || { $(PYTHON) -m venv build/lock && build/lock/bin/python -m pip install --quiet pip-tools==7.6.2; }
	$(COMPILE) --extra java,web,aws,kafka,postgres,dev --output-file requirements/dev.txt pyproject.toml
	$(COMPILE) --extra java --constraint requirements/dev.txt --output-file requirements/run.txt pyproject.toml

clean: ## remove .venv and everything that was generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed: make PYTHON=…" >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# The project itself is installed in place, from what is already there: its own code never comes from a registry.
$(RUN): requirements/run.txt pyproject.toml | $(BIN)/python
	$(PIP) install --require-hashes --requirement requirements/run.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt $(RUN)
	$(PIP) install --require-hashes --requirement requirements/dev.txt
	@touch $@
