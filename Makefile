# Everything here sets itself up: a virtual environment in .venv, with the tested versions of constraints.txt.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# One more than there are cores: many tests wait for jobs and servers.
WORKERS ?= $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)')

.PHONY: demo test test-cluster test-logins test-engine kills faults bench bench-watch bench-replay screenshots check format clean

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[demo,dev,agents,browser]'
	touch $(STAMP)

demo: $(STAMP)          ## A whole release on this machine, with you approving each job
	$(BIN)/gonogo demo $(DEMO)

test: $(STAMP)          ## The test suite
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

test-cluster: $(STAMP)  ## The tests over a real Slurm and OpenSSH, as root; fail where `test` would skip them
	CI=true $(BIN)/python -m pytest -p no:cacheprovider tests/cluster

test-logins: $(STAMP)   ## Whole releases with the demo's work over each kind of login, as root; minutes
	CI=true GONOGO_TEST_WORK=whole $(BIN)/python -m pytest -p no:cacheprovider tests/cluster/test_release.py

test-engine: $(STAMP)   ## Releases served by a real vLLM, no GPU; installs it: 2.5 GB, minutes. ENGINE=--short: a part
	$(BIN)/python -m tests.engine.install
	GONOGO_TEST_ENGINE=1 $(BIN)/python -m pytest -p no:cacheprovider tests/engine $(ENGINE)

kills: $(STAMP)         ## Kill releases at 50 enumerated points, twice in a row, and at random moments
	$(BIN)/python -m tests.kills $(KILLS)

faults: $(STAMP)        ## Submit 1,000 jobs under faults of network, cluster and process; nothing doubled, nothing lost
	$(BIN)/python -m tests.faults $(FAULTS)

bench: $(STAMP)         ## First frame, memory of a headless release, speed of a freeze: each beside a peer or a limit
	$(BIN)/python -m tests.benchmarks $(BENCH)

bench-watch: $(STAMP)   ## What watching 500 files and 50 jobs costs a cluster, and how soon a verdict comes; as root
	$(BIN)/python -m tests.benchmarks.watch $(BENCH)

bench-replay: $(STAMP)  ## A log of a million entries in a replay: opening, jumps, playing, memory; minutes
	$(BIN)/python -m tests.benchmarks.replay $(BENCH)

screenshots: $(STAMP)   ## The pictures in docs/images, from the console over a run of the demo
	$(BIN)/python docs/screenshots.py $(SCREENSHOTS)

check: $(STAMP)         ## Lint, format, types, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(STAMP)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
