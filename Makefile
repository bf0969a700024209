# Every verb sets up what it needs, on a machine with only python3, its venv module and make.
# Variables: PYTHON (the interpreter to begin with), ARGS (passed on to the command that a verb runs).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
ARGS ?=
VENV := .venv
READY := $(VENV)/.ready
BIN := $(VENV)/bin
# Some environments set it; then each of the many processes below would compile all modules anew.
unexport PYTHONDONTWRITEBYTECODE
CODE := $(wildcard omega schedulers migrations benchmarks tests)
PYTEST := $(BIN)/python -m pytest
# Processes share one private server, each with its own database. One more than there are processors:
# two leave a fifteenth of two processors idle. More than four only wait for disks.
PARALLEL := -n $(shell expr `getconf _NPROCESSORS_ONLN` + 1) --maxprocesses 4

.PHONY: help
help: ## List the verbs
	@sed -nE 's/^([a-z-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

.PHONY: setup
setup: $(READY) ## Make the virtual environment (the other verbs do this by themselves)

# The stamp is older than what it depends on: set up again, which is quick when little has changed.
# --no-deps: the pins are the whole list. The project itself is installed as it lies, for its
# command and for its schedulers' entry points.
$(READY): pyproject.toml requirements.txt requirements-dev.txt
	@echo "Setting up $(VENV); the first time takes a minute or two."
	@if command -v uv >/dev/null; then \
		$(BIN)/python -c '' 2>/dev/null || uv venv --quiet --clear --python '>=3.11,<3.15' $(VENV); \
		install=(uv pip install --quiet --python $(BIN)/python --no-deps); \
	else \
		$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' || \
			{ echo "$(PYTHON) is $$($(PYTHON) -V 2>&1); this needs Python 3.11 to 3.14: make PYTHON=python3.12 ..." >&2; exit 2; }; \
		$(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV); \
		$(BIN)/python -m pip --version >/dev/null 2>&1 || $(BIN)/python -m ensurepip >/dev/null; \
		install=($(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps); \
	fi; \
	"$${install[@]}" -r requirements-dev.txt; \
	"$${install[@]}" --editable .
	@touch $@

.PHONY: demo
demo: $(READY) ## See several schedulers race for one cell (ARGS="--seconds 10")
	@$(BIN)/omega demo $(ARGS)

# The checks run beside the tests: the type checker keeps one processor busy, and no more.
define tests_and_checks
said=$$(mktemp); trap 'rm -f "$$said"' EXIT; \
$(MAKE) --silent check >"$$said" 2>&1 & checking=$$!; \
code=0; $(PYTEST) $(PARALLEL) $(1) $(ARGS) || code=$$?; \
wait $$checking || { cat "$$said" >&2; exit 1; }; exit $$code
endef

.PHONY: test
test: $(READY) ## Lint, check types and run the tests, but for those of whole programs (ARGS="-k judge")
	@$(call tests_and_checks,-m "not slow")

.PHONY: test-all
test-all: $(READY) ## The same with all tests: agents, demos, guides, benchmarks at toy size
	@$(call tests_and_checks)

.PHONY: test-fast
test-fast: $(READY) ## Run the tests that need no database and little time
	@$(PYTEST) $(PARALLEL) -m "not postgres and not slow" $(ARGS)

.PHONY: test-postgres
test-postgres: $(READY) ## Run the tests that need a database
	@$(PYTEST) $(PARALLEL) -m postgres $(ARGS)

# Needs root, podman, runc, docker-compose, debootstrap and minutes, so that it is no part of `test`.
.PHONY: test-containers
test-containers: $(READY) ## Build the image and run docker-compose.yml, with stand-ins for its base images
	@$(PYTEST) -n 0 tests/deployment/compose_at_work.py $(ARGS)

# Needs Debian's user-mode-linux and root, so that it is no part of `test`: a kernel with all controllers of cgroup v2.
.PHONY: test-cgroups
test-cgroups: $(READY) ## Run the tests of cgroups on user-mode Linux, a kernel of its own
	@$(PYTEST) -n 0 tests/agent/cgroups_at_work.py $(ARGS)

# Needs Debian's patroni, etcd-server and haproxy, and minutes, so that it is no part of `test`. The
# figures of docs/guide/failover.md: PATRONI_FAILOVERS=10 make test-patroni
.PHONY: test-patroni
test-patroni: $(READY) ## Run deploy/patroni on three addresses, and kill its nodes under load
	@$(PYTEST) -n 0 -p no:randomly tests/deployment/patroni_at_work.py $(ARGS)

# The same tests in their long dose and on every kind of server, each named as it ends. To do one
# part of it: make prove ARGS="-k serial", say.
.PHONY: prove
prove: $(READY) ## Try much harder to break it: races, faults, long searches; a table at the end
	@$(PYTEST) $(PARALLEL) --dist worksteal -p no:randomly --hypothesis-profile prove -v --durations 60 \
		tests/agent tests/attack tests/contract tests/postgres tests/property $(ARGS)

# CI tests a few of them only. The page that this writes, docs/mutants.md, says which test kills which.
.PHONY: mutants
mutants: $(READY) ## Plant small faults, one at a time, and see that a test notices each
	@$(BIN)/python -m tests.mutants $(ARGS)

.PHONY: bench
bench: $(READY) ## Measure (ARGS="run commit --plot commit.png"); without ARGS, list what there is
	@$(BIN)/python -m benchmarks $(or $(ARGS),list)

.PHONY: format
format: $(READY) ## Put the code in its one layout, and mend what the linter can mend
	@$(BIN)/ruff format $(CODE)
	@$(BIN)/ruff check --fix $(CODE)

.PHONY: check
check: $(READY) ## Lint and check types
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check $(CODE)
	@$(BIN)/mypy $(CODE)

.PHONY: db
db: $(READY) ## Make the database ready: start it, and bring its tables up to date
	@$(BIN)/omega db init $(ARGS)

# All of the slow tests would take it beyond 12 minutes on two processors.
.PHONY: ci
ci: $(READY) ## What the continuous integration runs: make test, and a sixth of the slow tests' files
	@$(call tests_and_checks,--slow-share 6)

.PHONY: clean
clean: ## Remove the environment and every cache
	@rm -rf $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
