# Everything is set up by these targets: they make .venv, install the package with its pins, and run.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
CODE   := src benchmarks tests tools docs/notebooks
# Publishers' files for the tests on real yeast data; tests that need them say so when the folder is not there.
export WILDTYPE_MIRROR ?= $(abspath ../shared/data/yeast)
# Python keeps what it compiled: each worker would otherwise rewrite the assertions of all tests, for some ten seconds.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help install dev browser demo test fast-tests types test-slow test-processes test-faults test-journeys docs picture wheel audit sbom lint clean
.DEFAULT_GOAL := help

help: ## show the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.installed: pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 4))' || \
	  { echo "wildtype needs Python 3.11.4 or newer; $$($(PYTHON) --version) was found: set PYTHON=/path/to/python3.11"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

install: $(VENV)/.installed ## make .venv and install the package

dev: $(VENV)/.dev ## the same with the developer's tools

browser: ## install Chromium, for the tests that look at pages (Debian; elsewhere any Chromium on the PATH will do)
	@command -v chromium >/dev/null || { apt-get -q -y update && apt-get -q -y install --no-install-recommends chromium; } >/dev/null

demo: $(VENV)/.installed ## train the cell transformer and every baseline on the in-silico organism, print the table
	$(BIN)/wildtype train data=ecoli-core-growth run.folder=runs/demo run.overwrite=true

test: $(VENV)/.dev ## linters, types and the test suite (under 5 minutes on 2 cores)
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	@$(MAKE) --no-print-directory --jobs 2 fast-tests types  # types take a minute of one core alone

fast-tests: $(VENV)/.dev ## the test suite alone
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'not slow'

types: $(VENV)/.dev ## the types alone
	$(BIN)/mypy

test-slow: $(VENV)/.dev ## the tests marked slow (under 25 minutes on 2 cores)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 --dist loadfile -m 'slow and not alone and not processes and not faults and not journeys' --durations 10
	$(BIN)/python -m pytest -m alone

test-processes: $(VENV)/.dev ## train options in all pairs by one process and by several, print their number
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m processes

test-faults: $(VENV)/.dev ## kill, starve and damage at length: runs, stores, files of publishers
	OMP_NUM_THREADS=1 WILDTYPE_FUZZ_EXAMPLES=600 WILDTYPE_KILLS=30 WILDTYPE_EVERY_WRITE=1 WILDTYPE_GUIDED_RUNS=1000000 $(BIN)/python -m pytest -n 2 --dist worksteal \
	  -m slow --durations 10 tests/faults tests/sources/fuzz tests/datasets/store/test_interrupted.py

test-journeys: $(VENV)/.dev ## the first hour of new users: 60 commands, each with what should be seen
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow --durations 5 tests/journeys

docs: $(VENV)/.dev ## build the documents as a site in dist/docs (without the network)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo dist/docs/index.html

picture: $(VENV)/.installed ## draw the rooms of the package and their imports anew: docs/images/rooms.svg
	$(BIN)/python tools/rooms.py

wheel: $(VENV)-release/.tools ## build the wheel and the source archive in dist/, install the wheel into an empty environment and train with it
	rm -rf dist/wildtype-*.whl dist/wildtype-*.tar.gz build
	$(VENV)-release/bin/python -m build --outdir dist > dist.log || { cat dist.log; exit 1; }
	@rm dist.log
	$(PYTHON) -m venv --clear $(VENV)-release/wheel
	$(VENV)-release/wheel/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt dist/wildtype-*.whl
	cd $$(mktemp -d) && WILDTYPE_CACHE=$$PWD/cache $(abspath $(VENV)-release)/wheel/bin/wildtype train data.rows=1000 \
	  training.epochs=1 model.trees.bags=0 'baselines=[mean]' run.replicates=50 run.folder=run
	@ls dist/wildtype-*.whl dist/wildtype-*.tar.gz

audit: $(VENV)-release/.tools ## look the pinned versions up in the database of known vulnerabilities (needs the internet)
	$(VENV)-release/bin/pip-audit --strict --no-deps --disable-pip -r constraints.txt

sbom: $(VENV)-release/.tools ## write dist/sbom.json (CycloneDX): what an installation consists of
	$(PYTHON) -m venv --clear $(VENV)-release/installed
	$(VENV)-release/installed/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt .
	@mkdir -p dist
	$(VENV)-release/bin/cyclonedx-py environment --pyproject pyproject.toml --output-reproducible \
	  --of JSON -o dist/sbom.json $(VENV)-release/installed
	@echo dist/sbom.json

$(VENV)-release/.tools:
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/python -m pip install --quiet --disable-pip-version-check 'build>=1.2' 'cyclonedx-bom>=7' 'pip-audit>=2.9'
	@touch $@

lint: $(VENV)/.dev ## format the code and check it
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)
	$(BIN)/mypy

clean: ## remove .venv and everything built
	rm -rf $(VENV) $(VENV)-release build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
