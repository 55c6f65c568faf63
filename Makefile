# Each target first creates .venv if it does not exist.
#   make help         this text
#   make quickstart   pre-train, fine-tune, export, predict: six to eight minutes
#   make pretrain-demo TEXT=... DATA=...
#                     pre-train for two hours on WikiExtractor's text, then
#                     fine-tune on DATA/glue, also from random weights
#                     (DTYPE=float32 for processors without bfloat16)
#   make test         the quick tests: a few minutes
#   make test-all     all tests, including exhaustive ones: before a release
#   make bad-inputs   all scripts with all known bad inputs
#   make kills        kills runs of seven kinds 100 times, and compares
#   make mutants      how many small faults in the code the tests detect
#                     (MUTANTS_FLAGS=--only=losses for one module)
#   make gpu-check    how the training step compiles for an H100, without one:
#                     operations, bytes, memory and their limits
#   make tpu-check    the same for TPUs (needs Python 3.11: PYTHON=python3.11)
#   make beam-check   data creation by Apache Beam on a cluster of Dask with two
#                     workers, compared with local data byte for byte
#   make lint         ruff, imports between folders, names, documents, mypy
#   make house        how much code there is, and how much of it a reader
#                     opens on the way to the first training step
#   make picture      the picture of docs/architecture.md, from the imports
#                     (needs dot of Graphviz)
#   make docs         docs/ as a site, into site/; uses .venv-docs
#   make docs-serve   the site at http://127.0.0.1:8000, rebuilt when a page
#                     changes
#   make wheel URL=https://...
#                     a wheel for a package index, into dist/. URL is the
#                     public address of this repository, for the README's links
#   make docker-serve the image bert-tf-serve, which serves exported models
#   make docker-train the image bert-tf-train, which runs any script on GPUs
#   make venv         .venv only, with the pinned versions
#                     (EXTRAS=all,test,dev,viz,parity for the tests against
#                     PyTorch and transformers: 1 GB more)
#   make tpu-venv     .venv-tpu, the environment of a TPU host (2.5 GB)
#   make clean        removes caches and runs/, keeps .venv

SHELL := /bin/bash
PYTHON ?= python3
DOCKER ?= docker
PYTEST_FLAGS ?= -m "not slow"
EXTRAS ?= all,test,dev,viz
DTYPE ?= bfloat16
DEMO := configs/pretrain_demo.flags

VENV := .venv
BIN := $(VENV)/bin
DOCS := .venv-docs
TPU := .venv-tpu
XLA := .venv-xla
BEAM := .venv-beam
INSTALLED := $(VENV)/.installed-$(EXTRAS)

.PHONY: help quickstart demo-files pretrain-demo test test-all bad-inputs kills \
	mutants gpu-check tpu-check beam-check lint lint-types lint-style lint-imports \
	lint-house house picture docs docs-serve docker-serve docker-train venv tpu-venv \
	xla-venv wheel clean

help:
	@sed '/^$$/Q; s/^# \?//' Makefile

quickstart: venv
	@$(BIN)/python examples/quickstart/run.py

demo-files:
	@test -n "$(TEXT)" -a -n "$(DATA)" || { echo "error: give TEXT=, files \
	that WikiExtractor wrote, and DATA=, a folder with glue/SST-2, glue/STS-B \
	and glue/QNLI. Received: TEXT=$(TEXT) DATA=$(DATA)"; exit 1; }

# What was made is not made again, so that it may be stopped.
pretrain-demo: demo-files venv
	@$(BIN)/python -m benchmarks.objectives \
		--objectives=ltr_no_nsp,random_ltr --text="$(TEXT)" \
		--data_dir="$(DATA)" --output_dir=runs/demo \
		--pretraining_flags=--flagfile=$(DEMO),--dtype=$(DTYPE) \
		--finetuning_flags=--dtype=$(DTYPE)

# Tests start some hundred processes, which would compile the code each time.
test: export PYTHONDONTWRITEBYTECODE =
test: venv
	@echo "== Running the tests (flags: $(PYTEST_FLAGS))"
	@$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder \
		$(PYTEST_FLAGS)

test-all:
	@$(MAKE) --no-print-directory test PYTEST_FLAGS=--grappler

bad-inputs: venv
	@echo "== Giving every script bad inputs"
	@$(BIN)/python -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder \
		tests/bad_inputs

kills: venv
	@echo "== Killing runs, and starting them twice (half an hour)"
	@$(BIN)/python -m tests.survival

mutants: venv
	@echo "== Running the tests on mutants of the code"
	@$(BIN)/python -m tools.mutants $(MUTANTS_FLAGS)

gpu-check: venv xla-venv
	@echo "== Compiling the training step for an H100"
	@$(BIN)/python -m tools.accelerators --chips=h100 $(CHECK_FLAGS)

tpu-check: tpu-venv xla-venv
	@echo "== Compiling the training step for TPUs"
	@$(TPU)/bin/python -m tools.accelerators --chips=v5e,v5p,v6e,v4 \
		$(CHECK_FLAGS)

beam-check: $(BEAM)/.installed
	@echo "== Creating data on a cluster of two workers"
	@$(BEAM)/bin/python -m tools.beam_check

# All four, whatever the first of them says.
lint: venv
	@$(MAKE) --no-print-directory --jobs=2 --keep-going --output-sync \
		lint-types lint-style lint-imports lint-house

lint-types:
	@echo "== Checking with mypy"
	@$(BIN)/mypy

lint-style:
	@echo "== Checking with ruff"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check --quiet .

lint-imports:
	@echo "== Checking which folders import which"
	@$(BIN)/lint-imports --no-cache --no-logo

lint-house:
	@echo "== Checking names, documents and commands"
	@$(BIN)/python -m tools.lint

house: venv
	@echo "== Measuring the code, and what a reader opens of it"
	@$(BIN)/python -m tools.house

picture: venv
	@echo "== Drawing the components"
	@$(BIN)/python -m tools.picture

# An environment of its own: the pages are made without importing anything.
# The packages are those of the extra `docs`.
docs: $(DOCS)/.installed
	@echo "== Building the site"
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict
	@echo "== Built. Open site/index.html in a browser"

docs-serve: $(DOCS)/.installed
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs serve

$(DOCS)/.installed: setup.cfg constraints.txt
	@test -x $(DOCS)/bin/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS)/bin/python -m pip install --disable-pip-version-check --quiet \
	  -c constraints.txt mkdocs-material 'mkdocstrings[python]' ruff
	@touch $@

wheel: venv
	@test -n "$(URL)" || { echo "error: give the public address of this \
	repository, for the links in the README: make wheel URL=https://..."; exit 1; }
	@$(BIN)/python -m tools.wheel "$(URL)"

docker-serve docker-train: docker-%:
	@echo "== Building the image bert-tf-$*"
	@$(DOCKER) build --tag bert-tf-$* --file docker/$*.Dockerfile .

# Without dependencies: constraints-tpu.txt has all of them, and says why.
tpu-venv: $(TPU)/.installed

$(TPU)/.installed: constraints-tpu.txt
	@test -x $(TPU)/bin/python || $(PYTHON) -m venv $(TPU)
	@$(TPU)/bin/python -m pip install --disable-pip-version-check --no-deps \
	  -r constraints-tpu.txt -e .
	@touch $@

# JAX and TensorFlow do not share a process.
xla-venv: $(XLA)/.installed

$(XLA)/.installed: tools/accelerators/requirements.txt
	@test -x $(XLA)/bin/python || $(PYTHON) -m venv $(XLA)
	@$(XLA)/bin/python -m pip install --disable-pip-version-check --no-deps \
	  -r $<
	@touch $@

# Apache Beam allows older versions of some packages than constraints.txt has.
$(BEAM)/.installed: setup.cfg
	@test -x $(BEAM)/bin/python || $(PYTHON) -m venv $(BEAM)
	@$(BEAM)/bin/python -m pip install --disable-pip-version-check -e .[beam]
	@touch $@

venv: $(INSTALLED)

# Runs again only when the dependencies or their versions have changed.
$(INSTALLED): setup.cfg pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version.split()[0]; \
	  sys.exit(f"Python 3.11 to 3.13 is needed. Received: {v}. " \
	  "Name another: make PYTHON=python3.11") \
	  if not (3, 11) <= sys.version_info < (3, 14) \
	  else print("== Using Python", v)'
	@test -x $(BIN)/python || { echo "== Creating $(VENV)"; \
	  $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }; }
	@echo "== Installing the pinned dependencies (about 3 GB, some minutes)"
	@$(BIN)/python -m pip install --disable-pip-version-check \
	  -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@
	@echo "== Installed in $(VENV)"

clean:
	rm -rf runs site build dist .mypy_cache .pytest_cache .ruff_cache *.egg-info
	find . -name __pycache__ -not -path './.venv*' -prune -exec rm -rf {} +
