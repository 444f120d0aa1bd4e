# `make help` lists what there is. Every target sets up .venv by itself.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PROFILE ?= quick
# Cells side by side make times contended, which matters to the full protocol.
JOBS ?= $(if $(filter quick,$(PROFILE)),auto,1)
BUDGET ?=
# Many tests wait for a process of their own: one more at a time than there are cores, but eight at most.
TEST_JOBS ?= $(shell cores=$$(nproc 2> /dev/null || echo 2); echo $$((cores < 8 ? cores + 1 : 8)))
PYTEST_FLAGS ?=
# One of OpenBLAS's: Nehalem, Sandybridge, Haswell, Zen, SkylakeX ...
CORE_TYPE ?= Haswell
# Folders below tests/ that need more than `make setup-dev` installs: extras, programs, a JRE.
BEYOND := programs cluster spark blocks
BEYOND_TESTS := $(wildcard $(addprefix tests/,$(BEYOND)))
# The oldest supported Python and the tests that run with the oldest supported packages.
OLDEST_PYTHON ?= python3.11
OLDEST := .venv-oldest
OLDEST_TESTS := tests/schema tests/baselines/test_liblinear.py tests/baselines/test_foreign.py tests/cli/test_cli.py \
  tests/core/csvc/test_gap.py tests/core/linear/test_dcd.py tests/report/tables/test_layout.py
# Whether `make test` leaves these to `make test-beyond`.
APART ?=
# Empty where what they need can't be had: they are skipped then.
REQUIRE_BEYOND ?= 1

export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
# Tests start hundreds of processes: without bytecode each would compile the package's sources anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-dev docs compiled quickstart test test-slow test-all test-beyond test-oldest test-core-type test-no-jit coverage coverage-report lint format validate six-tasks regress baseline reproduce-all clean

help:  ## List the targets.
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

# Development tools bring what a user needs with them.
READY := $(if $(wildcard $(VENV)/.installed),$(VENV)/.installed,$(VENV)/.runtime)

$(VENV)/.runtime: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --editable .
	touch $@

$(VENV)/.installed: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

$(VENV)/.beyond: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[spark,dask,blocks]' --group dev
	touch $@

$(OLDEST)/.installed: pyproject.toml .ci/oldest.txt
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade pip
	$(OLDEST)/bin/python -m pip install --quiet --constraint .ci/oldest.txt --editable '.[blocks,qp]' \
	  hypothesis jsonschema pytest pytest-timeout
	touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --group docs
	touch $@

setup: $(READY)  ## Make .venv and install svmbench.

setup-dev: $(VENV)/.installed  ## Make .venv and install svmbench with its development tools.

quickstart: setup  ## Run a small real experiment that needs no data download; prints its table and where the plot is.
	@echo "the first run compiles the loops of its solvers (a minute or two); later runs reuse them"
	@$(BIN)/svmbench run quickstart --profile quick

# Each process of the tests would compile for itself what it is first to call.
compiled: setup-dev
	@echo "compiling the loops of the solvers, where the cache lacks them (a minute or two)"
	@$(BIN)/svmbench warmup --jobs $(TEST_JOBS) > /dev/null

# A file's tests stay in one process, which makes what they share once.
test: compiled  ## Run the tests but the slow ones (those of real data need SVMBENCH_MIRROR, and say so).
	@echo "the tests took 262 s on two idle cores; PYTEST_FLAGS='tests/report' runs a part of them"
	$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile -m "not slow" $(PYTEST_FLAGS) \
	  $(if $(APART),$(addprefix --ignore=,$(BEYOND_TESTS)))

test-slow: compiled  ## Run the tests that take more than one second of CPU time each.
	$(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile -m slow $(PYTEST_FLAGS) \
	  $(if $(APART),$(addprefix --ignore=,$(BEYOND_TESTS)))

test-all: test test-slow  ## Run all tests.

test-beyond: $(VENV)/.beyond  ## Run the tests of Spark, Dask and programs; what they need has to be here.
	SVMBENCH_REQUIRE_BEYOND=$(REQUIRE_BEYOND) $(BIN)/python -m pytest -n $(TEST_JOBS) --dist loadfile \
	  $(PYTEST_FLAGS) $(BEYOND_TESTS)

test-oldest: $(OLDEST)/.installed  ## Run a part of the tests with the oldest supported Python and packages, in .venv-oldest.
	$(OLDEST)/bin/python -m pytest -q -m "not slow and not mirror and not network" $(PYTEST_FLAGS) $(OLDEST_TESTS)

test-no-jit: setup-dev  ## Run the tests of the algorithms once more as plain Python.
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(TEST_JOBS) --dist worksteal $(PYTEST_FLAGS) tests/core

test-core-type: setup-dev  ## Run the tests of the algorithms with BLAS kernels of another CPU (CORE_TYPE=Haswell).
	OPENBLAS_CORETYPE=$(CORE_TYPE) $(BIN)/python -m pytest -n $(TEST_JOBS) --dist worksteal $(PYTEST_FLAGS) tests/core

coverage: setup-dev  ## Line coverage of svmbench/, the tests of core run with and without JIT.
	$(MAKE) test PYTEST_FLAGS="--cov --cov-report="
	$(MAKE) test-slow PYTEST_FLAGS="--cov --cov-append --cov-report="
	$(MAKE) test-no-jit PYTEST_FLAGS="--cov --cov-append --cov-report="
	$(MAKE) coverage-report

# A limit in pyproject.toml would hold for each stage of the tests alone.
coverage-report: setup-dev  ## Show the coverage of the tests that ran; less than 95 % fails.
	$(BIN)/python -m coverage report --fail-under=95

lint: setup-dev  ## ruff, formatting, types, spelling, workflows, sp-repo-review, and the limits on the package's code.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/codespell
	$(BIN)/zizmor --quiet --offline .
	$(BIN)/repo-review --show err
	$(BIN)/python scripts/size.py

format: setup-dev  ## Format the code.
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.docs  ## Build the documentation's site in docs/_build/html, without network; a warning fails.
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs docs/_build/html
	@echo "pages: docs/_build/html/index.html"

validate: setup-dev  ## Check every config.
	$(BIN)/svmbench validate configs/*.yaml

six-tasks: setup-dev  ## Do a contributor's six tasks in a scratch copy, each as its page says.
	$(BIN)/python scripts/six_tasks.py

regress: setup-dev  ## Run this tree and BASE (default: where it left origin/main) in turn; compare them.
	$(BIN)/python scripts/regress.py $(BASE)

baseline: setup-dev  ## Keep a new run of the gate's config as what every change is held to.
	$(BIN)/svmbench run regress --fresh --quiet --output results/repeats-quick/0
	for i in 1 2 3 4 5 6; do $(BIN)/svmbench run regress --fresh --quiet --only block=speed,block=kernel-speed \
	  --output results/repeats-quick/$$i || exit 1; done
	$(BIN)/svmbench keep results/repeats-quick results/regress

reproduce-all: setup-dev  ## Fetch, run, judge and show everything (PROFILE=quick or paper, JOBS=number or auto, BUDGET=minutes, TRUST=1).
	$(BIN)/svmbench reproduce --profile $(PROFILE) --jobs $(JOBS) $(if $(BUDGET),--budget $(BUDGET)) $(if $(TRUST),--trust)

clean:  ## Remove what tools left behind; results stay.
	rm -rf .mypy_cache .pytest_cache .ruff_cache .coverage .coverage.* build dist
	find . -name __pycache__ -not -path './$(VENV)*' -prune -exec rm -rf {} +
