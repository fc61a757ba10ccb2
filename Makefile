# Two commands: `make demo` and `make test`. Both set up what they need in .venv and nothing else on the machine.
#
# On Linux the default torch wheel brings gigabytes of CUDA. Name PyTorch's CPU index to get the small build:
#   make demo TORCH_INDEX=<the CPU index from PyTorch's "Get started" page>

PYTHON ?= python3
TORCH_INDEX ?=
PYTEST_ARGS ?=
# Tests run in two processes; `make test SPREAD=` runs them in one.
SPREAD ?= -n 2 --dist loadgroup

VENV := .venv
BIN := $(VENV)/bin
WORLDS := .venv-worlds
NEWEST := .venv-newest
PIP := $(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))
# Two cores are the yardstick: keep the numerical libraries from starting a thread pool each.
export OMP_NUM_THREADS ?= 1
export RAY_USAGE_STATS_ENABLED ?= 0
# Tests start hundreds of Pythons, each of which would compile our modules again where byte code is not kept.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast test-world test-engineers test-backends test-loop test-trainees test-language test-tools test-pages prove mutants worlds newest lint types check format clients fuzz bench bench-quick clean docs setup setup-dev tools-data

help: ## What there is to make
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: setup ## An engineer that reads training beside even draws, on 24 tasks; the table and the report page
	$(BIN)/envtuning compare exam-codes --engineers uniform,rising --seeds 3 --jobs 2 --out runs/demo
	$(BIN)/envtuning report runs/demo

test: setup-dev ## Every test
	$(BIN)/python -m pytest $(SPREAD) $(PYTEST_ARGS)

test-fast: setup-dev ## The tests that take seconds
	$(BIN)/python -m pytest -m "not slow and not ray and not prove" $(SPREAD) $(PYTEST_ARGS)

test-world: ## The environment: kernels, interfaces, text, generator, solvers, maps, pictures
test-engineers: ## Engineers without and with a model, and their command
test-backends: ## What engineers ask models by: providers, servers, local models
test-loop: ## Runs, stages, reports, comparisons, worlds, curricula and the command line
test-trainees: ## The trainees of lakes and of Stable-Baselines3, but for those that start Ray
test-language: ## Language models as trainees and as engineers
test-tools: ## Tool use
test-pages: ## What the pages say: links, figures, commands, names

LOOP := loop runs cli show studies worlds curriculum testing
test-world: PLACES = tests/world tests/text tests/generator tests/solvers tests/maps tests/render
test-engineers: PLACES = tests/engineers --ignore=tests/engineers/backends
test-backends: PLACES = tests/engineers/backends
test-loop: PLACES = $(LOOP:%=tests/envtuning/%)
test-trainees: PLACES = tests/envtuning/trainees
test-language: PLACES = tests/language
test-tools: PLACES = tests/bfcl tests/doors
test-pages: PLACES = tests/project
test-world test-engineers test-backends test-loop test-trainees test-language test-tools test-pages: setup-dev
	$(BIN)/python -m pytest -m "not slow and not ray and not prove" $(SPREAD) $(PYTEST_ARGS) $(PLACES)

prove: setup-dev ## The full counts of what `make test` runs in small: kills, corruptions, fuzzing; hours
	$(BIN)/python -m pytest -m prove $(PYTEST_ARGS)

mutants: setup-dev ## Faults of one line that the tests should find, drawn at random (COUNT=60 SEED=0 JOBS=2 ONLY=envtuning/loop)
	$(BIN)/python tests/tools/mutants.py --count $(or $(COUNT),60) --seed $(or $(SEED),0) --only "$(ONLY)" --jobs $(or $(JOBS),1)

worlds: $(WORLDS)/.ready ## MiniGrid as a world, in an environment of its own: it brings another pygame
	$(WORLDS)/bin/python -m pytest tests/envtuning/worlds/test_example_worlds.py $(PYTEST_ARGS)

newest: $(NEWEST)/.ready ## The world, the texts and the curricula on the newest Gymnasium, in an environment of its own: Ray asks for an older one
	$(NEWEST)/bin/python -m pytest tests/world tests/text tests/envtuning/curriculum $(SPREAD) $(PYTEST_ARGS)

lint: setup-dev ## Style and import order
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup-dev ## Static types
	$(BIN)/mypy

check: lint types test ## What CI runs

format: setup-dev ## Mend what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(VENV)/.docs ## The site, into site/: every link and anchor checked
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clients: setup-dev ## Every library of docs/compatibility.md, each in an environment of its own (CACHE=folder keeps them)
	$(BIN)/python -m clients $(CLIENTS) $(if $(CACHE),--cache $(CACHE))

fuzz: setup-dev ## 100,000 replies, instance files and engineers' answers; figures to benchmarks/results
	$(BIN)/python -m benchmarks.fuzz all --n 100000

bench-quick: setup-dev ## The main arms of the study small-corridors on one seed and another test, a few minutes on two cores
	$(BIN)/envtuning compare benchmarks/quick.yaml --jobs 2 --out runs/bench-quick

clean: ## Remove the environment and every cache
	rm -rf $(VENV) $(WORLDS) $(NEWEST) .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup: $(VENV)/.runtime
setup-dev: $(VENV)/.dev $(VENV)/.tools-data
tools-data: $(VENV)/.tools-data ## Both versions of the tool-use benchmark's package, without its requirements; verified

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.runtime: $(VENV)/bin/python pyproject.toml constraints.txt
	@echo "installing the runtime into $(VENV) (a few minutes the first time) …"
	$(PIP) torch
	$(PIP) -e ".[rllib,render]"
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime
	@echo "installing the test tools and every extra into $(VENV) …"
	$(PIP) -e ".[all,dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/bin/python pyproject.toml constraints.txt
	$(PIP) -e ".[docs]"
	@touch $@

$(WORLDS)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(WORLDS)
	$(WORLDS)/bin/python -m pip install -q --disable-pip-version-check -c constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) \
		-e ".[sb3]" "minigrid>=3" pytest pytest-timeout
	@touch $@

$(NEWEST)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(NEWEST)
	grep -v "^gymnasium==" constraints.txt > $(NEWEST)/constraints.txt
	$(NEWEST)/bin/python -m pip install -q --disable-pip-version-check -c $(NEWEST)/constraints.txt \
		-e ".[render,sb3]" "gymnasium>=1.4,<1.5" pytest pytest-timeout pytest-xdist pytest-httpserver hypothesis
	@touch $@

$(VENV)/.tools-data: $(VENV)/.dev envtuning/worlds/bfcl/package.py
	$(BIN)/python -m envtuning.worlds.bfcl install --version all
	@touch $@
