# Needs Python 3.11 or newer, make and a package index. `make help` lists the targets.

PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)

BIN := .venv/bin
INSTALLED := .venv/.installed
PAGES := $(wildcard README.md docs) src
COVERAGE := --cov --cov-report=term
FAST := $(wildcard tests/core tests/compiler tests/engine) tests/test_house.py

.PHONY: help demo test test-all check bench docs clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo
	@echo "  PYTHON=...       the Python that .venv is made with"
	@echo "  TORCH_INDEX=...  one more index to find torch on, such as that of its CPU builds"

# Without the stamp a .venv is half made, so it starts afresh; it stands only for a whole install.
$(INSTALLED): pyproject.toml constraints.txt
	@test -f $@ || $(or $(PYTHON),$(error soma needs Python 3.11 or newer: make PYTHON=/path/to/python)) -m venv --clear .venv
	@rm -f $@
	$(BIN)/python -m pip install --disable-pip-version-check --no-input \
		$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c constraints.txt -e '.[all,dev]'
	@touch $@

demo: $(INSTALLED) ## Train on the digits and say which part does not learn
	$(BIN)/python examples/digits.py

test: $(INSTALLED) ## Run every test but the slow ones, and the README
	$(BIN)/pytest -n 2 $(COVERAGE) -m "not slow" tests README.md

test-all: $(INSTALLED) ## Run every test and every snippet
	$(BIN)/pytest -n 2 $(COVERAGE) tests $(PAGES)

check: $(INSTALLED) ## Check format, lint, types, layers and the fast tests: under a minute
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy src $(wildcard tests/typing)
	$(BIN)/lint-imports --no-logo
	$(BIN)/pytest -q -m "not slow and not process" $(FAST)

bench: $(INSTALLED) ## Run every benchmark
	@set -e; for bench in $(wildcard bench/*.py); do echo "== $$bench"; $(BIN)/python $$bench; done

docs: $(INSTALLED) ## Run the snippets of README, docs and docstrings
	$(BIN)/pytest -q $(PAGES)

clean: ## Remove what make made, .venv included
	rm -rf .venv build dist .coverage .coverage.* .hypothesis \
		.import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
