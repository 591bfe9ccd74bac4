# Everything here sets itself up: a virtual environment in .venv, with the tested versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check bench kills screenshots format clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,dev]'
	touch $(STAMP)

demo: $(STAMP)          ## A whole release on the embedded cluster; you approve the jobs
	$(BIN)/gonogo demo

test: $(STAMP)          ## The test suite
	$(BIN)/python -m pytest -n auto --dist loadgroup

check: $(STAMP)         ## Lint, format, types, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)         ## Benchmarks: print ratios against a named peer in the same run
	$(BIN)/python -m tests.benchmarks

kills: $(STAMP)         ## Kill a release at 50 crash points, resume each, print the table
	$(BIN)/python -m tests.kills

screenshots: $(STAMP)   ## Make the pictures of the README from the running console
	$(BIN)/python -m tests.screenshots docs/images

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
