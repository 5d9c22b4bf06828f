# rlexp: `make run` sets everything up and trains; `make help` lists the rest.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DONE   := $(VENV)/.setup-done
CORES  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)

export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format type bench table1 table2 figure4 figure5 lcpo-paper lcpo-envs lcpo-variants fidelity figure-cliffwalk bench-replay clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-16s %s\n", $$1, $$2}'

setup: $(DONE) ## make the environment in .venv (Python 3.11 or newer)

$(DONE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rlexp needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt torch
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

run: setup ## the main job: LCPO learns the restaurant task, about half a minute
	$(BIN)/rlexp algo=lcpo env=restaurant

test: setup ## the test suite, on all cores
	$(BIN)/pytest -n $(CORES) --dist worksteal

lint: setup ## ruff, mypy --strict and the floors of the house
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: setup ## mypy --strict
	$(BIN)/mypy

bench: setup ## side-by-side speed measurements, as ratios
	@for file in tests/benchmarks/*_speed.py; do echo "== $$file"; $(BIN)/python $$file || exit 1; done

table1: setup ## Wu & Rasmussen 2021, Table 1: PPO, TAM, LCPO
	$(BIN)/rlexp sweep table1
	$(BIN)/rlexp report table1

table2: setup ## Wu & Rasmussen 2021, Table 2: which advantages are clipped
	$(BIN)/rlexp sweep table2
	$(BIN)/rlexp report table2

figure4: setup ## Wu & Rasmussen 2021, Figure 4: learning curves
	$(BIN)/rlexp sweep figure4
	$(BIN)/rlexp report figure4

figure5: setup ## Wu & Rasmussen 2021, Figure 5: termination loops, update interval
	$(BIN)/rlexp sweep figure5
	$(BIN)/rlexp report figure5

lcpo-paper: table1 table2 figure4 figure5 ## the whole paper

lcpo-envs: setup ## beyond the paper: all six benchmark environments
	$(BIN)/rlexp sweep lcpo_envs
	$(BIN)/rlexp report lcpo_envs

lcpo-variants: setup ## beyond the paper: decaying learning rate, size of an update
	$(BIN)/rlexp sweep lcpo_variants
	$(BIN)/rlexp report lcpo_variants

fidelity: setup ## the restaurant task against the published yardsticks
	$(BIN)/rlexp report restaurant_fidelity

figure-cliffwalk: setup ## Schaul et al. 2016, Figure 1: updates until solved, by order of replay
	$(BIN)/rlexp report cliffwalk

bench-replay: setup ## prioritized replay beside cpprb and Tianshou
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[bench]'
	$(BIN)/python -W ignore tests/benchmarks/replay_speed.py --plot outputs/replay_scaling.svg

clean: ## delete caches, keep the environment and every run
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
