# rlexp: `make run` sets everything up and trains; `make help` lists the rest.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
DONE   := $(VENV)/.setup-done
CORES  := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 1)
PIP    := $(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt
INSTALL := $(BIN)/python -m rlexp.system.install -c constraints.txt

export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup run test test-slow attack wheel-check lint format type bench table1 table2 figure4 figure5 lcpo-paper lcpo-envs lcpo-variants fidelity energy-fidelity energy energy-surrogate figure-cliffwalk per bench-replay r2d3 r2d3-key-corridor acer acer-minatar acer-continuous acer-restaurant acer-atari pomdp zoo docs docs-serve clean

help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | awk -F'\t' '{printf "  make %-18s %s\n", $$1, $$2}'

setup: $(DONE) ## make the environment in .venv (Python 3.11 or newer)

$(DONE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rlexp needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	$(PIP) torch
	$(INSTALL) -e '.[all,dev]'
	@$(BIN)/python -m rlexp.envs.datacenter.fetch || echo 'everything but env=datacenter works without it'
	@touch $@

# The tests start hundreds of processes; where Python may write no bytecode, each would compile what it imports. Some
# packages ship files for other Pythons, which do not compile.
COMPILED := $(VENV)/.compiled
$(COMPILED): $(DONE)
	@$(BIN)/python -W ignore -m compileall -qq -j 0 -x '/(tests?|examples)/' $(VENV)/lib rlexp > /dev/null 2>&1 || true
	@touch $@

run: setup ## the main job: LCPO learns the restaurant task, about half a minute
	$(BIN)/rlexp algo=lcpo env=restaurant

# One worker more than cores: many tests wait for processes.
PYTEST := $(BIN)/pytest -n $(shell expr $(CORES) + 1) --dist worksteal

test: setup $(COMPILED) ## the test suite, on all cores, but for what takes longest
	$(PYTEST) -m 'not slow'

test-slow: setup $(COMPILED) ## the rest: agents that must learn, runs that are killed, Ray, the tutorial as it is printed
	$(PYTEST) -m slow

attack: setup ## odd command lines, damaged files, faulty environments, signals: a quarter of an hour of two cores
	$(BIN)/python -m tests.attack

wheel-check: setup ## install the wheel alone in an empty environment, train there, and count packages and megabytes
	$(BIN)/python tests/packaging/wheel_check.py

lint: setup ## ruff, mypy --strict and the layers of the packages
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: setup ## put the code in shape
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

type: setup ## mypy --strict
	$(BIN)/mypy

# Material for MkDocs warns of MkDocs 2, which it does not run on; pyproject.toml holds MkDocs below 2.
docs docs-serve: export NO_MKDOCS_2_WARNING := 1

docs: setup ## the documentation site, in outputs/site
	$(INSTALL) -e '.[docs]'
	$(BIN)/python -m mkdocs build --strict --quiet

docs-serve: setup ## the same on http://127.0.0.1:8000, built again when a page changes
	$(INSTALL) -e '.[docs]'
	$(BIN)/python -m mkdocs serve --dev-addr 127.0.0.1:8000

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

fidelity: setup ## the restaurant task against the published reference values
	$(BIN)/rlexp report restaurant_fidelity

energy-fidelity: setup ## the data centre: controllers on the EnergyPlus engine, and our model of it beside the engine
	$(BIN)/rlexp report datacenter_fidelity --strict

energy: setup ## Biemann et al. 2021: five agents cool a data centre on EnergyPlus (20 hours of one core, in as many stretches as you like)
	$(BIN)/rlexp sweep energy
	$(BIN)/rlexp report energy

energy-surrogate: setup ## the same on our own model of the plant, with more seeds
	$(BIN)/rlexp sweep energy_surrogate
	$(BIN)/rlexp report energy_surrogate

figure-cliffwalk: setup ## Schaul et al. 2016, Figure 1: updates until solved, by order of replay
	$(BIN)/rlexp report cliffwalk

per: setup ## Schaul et al. 2016 on MinAtar: uniform, proportional, rank (about two hours of one core)
	$(BIN)/rlexp sweep per
	$(BIN)/rlexp report per

bench-replay: setup ## prioritized replay beside cpprb and Tianshou
	$(INSTALL) -e '.[bench]'
	$(BIN)/python -W ignore tests/benchmarks/replay_speed.py --plot outputs/replay_scaling.svg

DEMONSTRATIONS := outputs/demonstrations/unlock_pickup-bot-500.npz outputs/demonstrations/blocked_unlock_pickup-bot-500.npz
KEY_CORRIDOR := outputs/demonstrations/key_corridor-bot-500.npz

$(DEMONSTRATIONS) $(KEY_CORRIDOR): | $(DONE)  # <task>-bot-<episodes>.npz, the same bytes every time
	$(BIN)/rlexp demos env=$(firstword $(subst -bot-, ,$(basename $(@F)))) expert=bot episodes=$(lastword $(subst -bot-, ,$(basename $(@F)))) output=$@

r2d3: setup $(DEMONSTRATIONS) ## Paine et al. 2019 in small: demonstrations on hard exploration, and DI-engine's three studies
	@for sweep in r2d3 r2d3_ratio r2d3_count r2d3_pretraining; do $(BIN)/rlexp sweep $$sweep && $(BIN)/rlexp report $$sweep || exit 1; done

r2d3-key-corridor: setup $(KEY_CORRIDOR) ## the same on KeyCorridorS3R3, with more demonstrations
	$(BIN)/rlexp sweep r2d3_key_corridor
	$(BIN)/rlexp report r2d3_key_corridor

acer: acer-minatar acer-continuous acer-restaurant ## Wang et al. 2017: every table and figure of ACER but Atari's

acer-minatar: setup ## ACER, PPO and A2C on MinAtar; what replay is worth
	$(BIN)/rlexp sweep acer_minatar
	$(BIN)/rlexp report acer_minatar
	$(BIN)/rlexp sweep acer_replay_ratio
	$(BIN)/rlexp report acer_replay_ratio

acer-continuous: setup ## ACER beside PPO on continuous actions; its parts left out; LunarLander
	@for name in acer_continuous acer_ablation acer_lunar_lander; do \
		$(BIN)/rlexp sweep $$name && $(BIN)/rlexp report $$name || exit 1; done

acer-restaurant: setup ## ACER, PPO, LCPO and prioritized DQN on the dialogue task
	$(BIN)/rlexp sweep acer_restaurant
	$(BIN)/rlexp report acer_restaurant

acer-atari: setup ## Pong, Qbert, SpaceInvaders: days, for whoever has an accelerator
	$(BIN)/rlexp sweep acer_atari
	$(BIN)/rlexp report acer_atari

zoo: setup ## settings for gymnasium's environments beside RL-Zoo's published scores (about four hours of one core)
	$(BIN)/rlexp sweep zoo
	$(BIN)/rlexp report zoo

pomdp: setup ## agents that remember, on Pendulum of which half is hidden
	$(BIN)/rlexp sweep pomdp
	$(BIN)/rlexp report pomdp

clean: ## delete caches, keep the environment and every run
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -not -path './$(VENV)/*' -prune -exec rm -rf {} +
