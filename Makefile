# `make demo` and `make test` are the two commands of the README; both work on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DIR    ?=
SEEDS  ?= 1000
FIRST  ?= 0
JOBS   ?= 1

.PHONY: install dev check test sim demo clean

install: $(VENV)/.installed          ## .venv with sockpqd and pqctl, nothing for developers
dev: $(VENV)/.installed-dev          ## the same with the test tools

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml client/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./client -e .
	touch $@

$(VENV)/.installed-dev: pyproject.toml client/pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./client -e '.[dev]'
	touch $@ $(VENV)/.installed

check: dev                           ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

test: check                          ## everything
	$(BIN)/python -m pytest

sim: dev                             ## whole clusters, simulated: SEEDS=1000 runs from FIRST=0 on, by JOBS=1 processes
	$(BIN)/python -m tests.sim --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)

demo: install                        ## three nodes, real work, a killed leader; DIR=folder to hash
	$(BIN)/python -m bench.demo $(if $(DIR),"$(DIR)")

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache
