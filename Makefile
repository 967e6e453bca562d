# Every target makes its own environment first: only Python 3.11+, make and git are needed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# Tests, demo and benchmarks start hundreds of processes: the package is compiled for the first only.
unexport PYTHONDONTWRITEBYTECODE

# The first interpreter that really starts and is new enough; override with PYTHON=/path/to/python.
PYTHON ?= $(shell for candidate in python3.13 python3.12 python3.11 python3; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 \
	&& { echo "$$candidate"; break; }; done)

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --retries 5 --timeout 60
# No build isolation: an isolated build would fetch its tools without hashes. requirements/build.txt
# puts the same tools, pinned, into the environment first.
INSTALL := $(PIP) install --quiet --no-build-isolation --require-hashes

BUILD_STAMP := $(VENV)/.stamp-build
DEV_STAMP := $(VENV)/.stamp-dev
PROJECT_STAMP := $(VENV)/.stamp-project
DOCS_STAMP := $(VENV)/.stamp-docs
PINS_STAMP := $(VENV)/.stamp-pins

.PHONY: help venv demo demo-all test lint check coverage soak bench docs pins fmt clean

help: ## show this list
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /\1\t/' | expand -t 12

venv: $(PROJECT_STAMP) ## create .venv with the product and the development tools

$(BUILD_STAMP): requirements/build.txt
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer is needed (set PYTHON=...)" >&2; exit 1; }
	@echo "creating $(VENV) with $(PYTHON)"
	test -x $(BIN)/python || "$(PYTHON)" -m venv $(VENV)
	$(PIP) install --quiet --require-hashes -r requirements/build.txt
	touch $@

$(DEV_STAMP): requirements/dev.txt $(BUILD_STAMP)
	@echo "installing the pinned dependencies (Spark included: some minutes the first time)"
	$(INSTALL) -r requirements/dev.txt
	touch $@

$(PROJECT_STAMP): pyproject.toml src/omnigraph/version.py $(DEV_STAMP)
	$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	touch $@

$(DOCS_STAMP): requirements/docs.txt $(PROJECT_STAMP)
	$(INSTALL) -r requirements/docs.txt
	touch $@

$(PINS_STAMP): requirements/pins.txt $(BUILD_STAMP)
	$(INSTALL) -r requirements/pins.txt
	touch $@

demo: venv ## from a CSV file to a million rows in a minute
	$(BIN)/python -m demo.story

demo-all: venv ## the long tour: all that OmniGraph can do today
	$(BIN)/python -m demo

# Tests that share a server, a JVM or a cluster go to one process. Many wait for processes that they
# start: one test process more than cores keeps both of two busy.
PYTEST := $(BIN)/python -m pytest -n 3 --dist loadgroup

test: venv ## the whole test suite
	$(PYTEST)

lint: venv ## formatting, lint, types and layers
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

check: lint ## the same and the quick tests
	$(PYTEST) -m "not slow"

# Tracing would make the long generated tests several times longer and tell nothing new.
coverage: venv ## what the quick tests cover, by branches
	$(PYTEST) -m "not slow" --cov=omnigraph --cov-report=term

soak: venv ## the searches of the tests, much further; OMNIGRAPH_SOAK_KILLS and _SEED choose
	@export OMNIGRAPH_TEST_PROFILE=soak OMNIGRAPH_SOAK_SEED=$${OMNIGRAPH_SOAK_SEED:-$$(date +%s)}; \
	echo "seed $$OMNIGRAPH_SOAK_SEED"; \
	$(PYTEST) -m "soak or pairwise or hypothesis"

bench: venv ## the benchmarks, as ratios with limits
	$(BIN)/python -m bench

docs: $(DOCS_STAMP) ## build the documentation into site/, warnings are errors
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# product.txt is resolved first and constrains the rest, so that tests run on what users install.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --no-header --no-annotate

pins: $(PINS_STAMP) ## resolve pyproject.toml again into requirements/ (UPGRADE=1: newest allowed)
	$(COMPILE) $(if $(UPGRADE),--upgrade) pyproject.toml --extra all -o requirements/product.txt
	$(COMPILE) $(if $(UPGRADE),--upgrade) --group build -o requirements/build.txt
	$(COMPILE) $(if $(UPGRADE),--upgrade) --group pins -o requirements/pins.txt
	$(COMPILE) $(if $(UPGRADE),--upgrade) pyproject.toml --extra all --extra test --extra bench \
		--group build \
		-c requirements/product.txt -c requirements/build.txt -o requirements/dev.txt
	$(COMPILE) $(if $(UPGRADE),--upgrade) pyproject.toml --extra all --extra docs \
		-c requirements/dev.txt -o requirements/docs.txt

fmt: venv ## format the Python sources and fix what ruff can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## remove what tools leave behind; the environment stays
	rm -rf build dist site .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache \
		.hypothesis .import_linter_cache
	find src tests bench demo -name __pycache__ -type d -prune -exec rm -rf {} +
