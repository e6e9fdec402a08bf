# `make demo` and `make test` are the two commands of the README; both work on a fresh machine.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DIR    ?=
SEEDS  ?= 1000
FIRST  ?= 0
JOBS   ?= 1
MINUTES ?= 60
TOOLS  := .tools
TOXIPROXY         := github.com/Shopify/toxiproxy/v2/cmd/server
TOXIPROXY_VERSION := v2.12.0

.PHONY: install dev check test-fast test test-deploy client-faces toxiproxy sim chaos chaos-long hostile docs test-browser demo play dist manual bench-plots clean

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

test-fast: dev                       ## style, types, and all tests that are quick and start no process
	$(BIN)/python -m tests.lanes fast

# With SOCKPQD_TEST_DEPLOY=1 also the tests on containers; without it they are skipped, with one line.
test: dev toxiproxy $(if $(filter 1,$(SOCKPQD_TEST_DEPLOY)),$(VENV)/.installed-deploy)   ## everything, in three lanes at once
	$(BIN)/python -m tests.lanes all

test-deploy: $(VENV)/.installed-deploy   ## Ansible on three containers: root, systemd-nspawn, debootstrap; else skipped
	SOCKPQD_TEST_DEPLOY=1 $(BIN)/python -m pytest --capture=tee-sys tests/deploy

$(VENV)/.installed-deploy: $(VENV)/.installed-dev
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./client -e '.[deploy]'
	touch $@

client-faces: $(BIN)/python          ## the methods of both clients, from their declarations
	$(BIN)/python client/tools/faces.py

toxiproxy:                           ## the proxy of tests/chaos; it never fails: without it those tests are skipped
	@command -v toxiproxy-server >/dev/null || test -e $(TOOLS)/.toxiproxy-$(TOXIPROXY_VERSION) \
		|| $(MAKE) --no-print-directory $(TOOLS)/.toxiproxy-$(TOXIPROXY_VERSION) \
		|| echo "no toxiproxy-server: the chaos tests will be skipped"

# A folder of its own, and a rename: two of these at once do not disturb each other, and no half of a program is found.
$(TOOLS)/.toxiproxy-$(TOXIPROXY_VERSION):
	@mkdir -p $(TOOLS)
	@build="$$(mktemp -d "$(CURDIR)/$(TOOLS)/build-XXXXXX")"; trap 'rm -rf "$$build"' EXIT; \
		echo "building toxiproxy $(TOXIPROXY_VERSION)"; \
		GOBIN="$$build" timeout 300 go install $(TOXIPROXY)@$(TOXIPROXY_VERSION) \
		&& mv "$$build/server" $(TOOLS)/toxiproxy-server && touch $@

sim: dev                             ## whole clusters, simulated: SEEDS=1000 runs from FIRST=0 on, by JOBS=1 processes
	$(BIN)/python -m tests.sim --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS)

chaos: dev toxiproxy                 ## real processes with faults, each scenario once
	$(BIN)/python -m pytest tests/chaos

chaos-long: dev toxiproxy            ## real processes with faults, rotating: MINUTES=60; goes on after a failure
	$(BIN)/python -m tests.chaos --minutes $(MINUTES)

hostile: dev                         ## attacks on real nodes, beside an ordinary client; all of them as root only
	$(BIN)/python -m tests.hostile

docs: dev                            ## the documentation as a site, in build/site: open index.html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./client -e '.[docs]'
	$(BIN)/python -m mkdocs build --quiet

test-browser: dev                    ## the dashboard in chromium (Debian: chromium, chromium-driver); else skipped
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./client -e '.[browser]'
	$(BIN)/python -m pytest tests/browser

demo: install                        ## three nodes, real work, a killed leader; DIR=folder to hash
	$(BIN)/python -m bench.demo $(if $(DIR),"$(DIR)")

play: install                        ## three nodes that stay, a producer and workers; kill what you like, Ctrl-C ends it
	$(BIN)/python -m bench.play

dist: dev manual                     ## wheels and sources of sockpqd and sockpq, in dist/
	$(BIN)/python -m build --outdir dist client
	$(BIN)/python -m build --outdir dist .

manual: $(VENV)/.installed           ## man pages and completions, from the programs
	$(BIN)/python deploy/manual/make.py

bench-plots: dev                     ## tables and pictures of docs/BENCHMARKS.md anew, from what is in bench/results
	$(BIN)/python -m bench.tables bench/results/*.jsonl --into docs/BENCHMARKS.md
	$(BIN)/python -m bench.others bench/results/others/*.jsonl --into docs/BENCHMARKS.md
	$(BIN)/python -m bench.plots bench/results/*.jsonl --to docs/benchmarks

clean:
	rm -rf $(VENV) $(TOOLS) build dist .mypy_cache .pytest_cache .ruff_cache
