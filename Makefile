# One command per idea; `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SCENARIO ?= caller

.DEFAULT_GOAL := help
.PHONY: help demo up test check generate lint mutants bench newer clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

$(VENV)/.runtime: requirements.txt pyproject.toml
	@bash stack/venv.sh "$(PYTHON)" $(VENV) requirements.txt
	@touch $@

$(VENV)/.dev: $(VENV)/.runtime requirements-dev.txt
	@bash stack/venv.sh "$(PYTHON)" $(VENV) requirements-dev.txt
	@touch $@

demo: $(VENV)/.runtime ## replay the case on a simulated fleet: the page comes, the page resolves, the report is printed
	@bash stack/tools.sh
	@$(BIN)/python -m tidegauge.demo --scenario $(SCENARIO) $(ARGS)

up: $(VENV)/.runtime ## the same, and stay up until Ctrl-C
	@bash stack/tools.sh
	@$(BIN)/python -m tidegauge.demo --scenario $(SCENARIO) --stay $(ARGS)

test: $(VENV)/.dev ## install what the tests need and run all of them
	@bash stack/tools.sh
	@bash stack/newer.sh
	@bash stack/types.sh
	@$(BIN)/python -m pytest -n 2

check: $(VENV)/.dev ## regenerate everything and fail on a difference; lint; types
	@$(BIN)/python -m pytest -q tests/consistency
	@$(MAKE) --no-print-directory lint

generate: $(VENV)/.dev ## write every generated file from the catalogue, the jsonnet and the dashboards
	@$(BIN)/python -m dashboards.generate
	@$(BIN)/python -m mixin.generate

lint: $(VENV)/.dev ## ruff and mypy
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy

newer: ## get Prometheus 3 from Debian's newer suite into build/, for the rule tests
	@bash stack/newer.sh

mutants: $(VENV)/.dev ## hold every wrong variant of rules and alerts against the truth tables; minutes
	@bash stack/tools.sh
	@$(BIN)/python -m tests.rules.mutants

bench: $(VENV)/.dev ## benchmarks, side by side in one run
	@$(BIN)/python -m benchmarks

clean: ## remove what the targets made
	rm -rf $(VENV) build
