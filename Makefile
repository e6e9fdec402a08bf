# `make demo` and `make test` are the two commands of the README; both work on a fresh machine.
# The distribution's Python where it is new enough and can make environments: it is built with optimizations, which is worth
# up to a third of the processor time; others often are not.
SYSTEM_PYTHON := /usr/bin/python3
PYTHON ?= $(shell $(SYSTEM_PYTHON) -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $(SYSTEM_PYTHON) || echo python3)
VENV   := .venv
BIN    := $(VENV)/bin
# As new versions of pip do it: pysyncobj's old way needs the package wheel, which Debian's environments lack.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517
DIR    ?=
SEEDS  ?= 1000
FIRST  ?= 0
JOBS   ?= 1
ROUNDS ?= 1000
SECONDS   ?= 120
FAILOVERS ?= 5
MINUTES ?= 60
SYSTEM  ?= rabbitmq
EACH    ?= 5
SEED    ?=
PUBLISH ?=
TASKS   ?= 20000
MESSAGES ?= 3000
TIMES   ?= 10
REQUESTS ?= 20000
VERSIONS ?= 3.11 3.13 3.14
DEPTHS  ?= 100000,10000000
RATE    ?= 10000
PUTS    ?= 1000000
TOOLS  := .tools
# Distributions beside the server, each with its tests' needs as the extra `test`.
INTEGRATIONS := $(notdir $(wildcard integrations/*))
TOXIPROXY         := github.com/Shopify/toxiproxy/v2/cmd/server
# What `make dist`, `make deb` and `make image` make, under the names that it has, and what it is made from.
WHEEL   := $(or $(wildcard dist/sockpqd-*.whl),dist/sockpqd.whl)
DEB     := $(or $(wildcard dist/sockpqd_*.deb),dist/sockpqd.deb)
IMAGE   := $(or $(wildcard dist/sockpqd_*.oci.tar),dist/sockpqd.oci.tar)
SOURCES := $(or $(wildcard $(shell git ls-files 2>/dev/null)),always)
COMMITS := $(wildcard $(shell git rev-parse --git-path logs/HEAD 2>/dev/null))
TOXIPROXY_VERSION := v2.12.0
HELM_VERSION := v3.16.4
KOMBU_VERSION     := 5.7.0
CELERY_VERSION    := 5.7.0
NODES   ?= 3
CLUSTERS ?= 1
BACKEND ?= sockpq
UPSTREAM ?=
AT      ?= proxy
KEY     ?=
PAGED   ?=
GROUPED ?=
ONLY    ?= *

.PHONY: install dev check test-fast test test-pythons test-deploy helm model client-faces toxiproxy kombu-tests celery-tests test-celery test-beanstalkd test-http test-sqs celery-faults push-faults test-frameworks frameworks-faults laws sim sim-pulses moves chaos chaos-long chaos-results torture damage mutants hostile bench-depth bench-regions docs test-browser demo play play-celery play-sqs dist proof proof-peers lock deb image manual bench-record bench-plots clean

install: $(VENV)/.installed          ## .venv with sockpqd, pqctl and pqworker, nothing for developers
	@echo "Installed in $(BIN). Next: make play, or $(BIN)/sockpqd --dev and in a second terminal $(BIN)/pqctl shell (README.md, Type along); . $(BIN)/activate puts them on your path."
dev: $(VENV)/.installed-dev          ## the same with the test tools

# Half an environment, as Debian leaves it without the package python3-venv, would not be made anew.
$(BIN)/python:
	@echo "Making a virtual environment in $(VENV) .."
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/.installed: pyproject.toml client/pyproject.toml | $(BIN)/python
	@echo "Fetching what sockpqd needs from the Python package index, and installing it: a minute or two .."
	@$(PIP_INSTALL) -e './client[worker]' -e '.[top]'
	@touch $@

$(VENV)/.installed-dev: pyproject.toml client/pyproject.toml $(wildcard integrations/*/pyproject.toml) | $(BIN)/python
	@echo "Fetching what sockpqd and its tests need from the Python package index, and installing it: some minutes .."
	@$(PIP_INSTALL) -e './client[worker]' $(foreach name,$(INTEGRATIONS),-e ./integrations/$(name) -e './integrations/$(name)[test]') -e '.[dev]'
	@touch $@ $(VENV)/.installed

check: dev                           ## style and types
	$(BIN)/ruff check .
	$(BIN)/mypy

test-fast: dev                       ## style, types, and all tests that are quick and start no process
	$(BIN)/python -m tests.lanes fast

# With SOCKPQD_TEST_DEPLOY=1 also the tests on containers; without it they are skipped, with one line.
test: dev toxiproxy kombu-tests $(if $(filter 1,$(SOCKPQD_TEST_DEPLOY)),$(VENV)/.installed-deploy)   ## everything, in four lanes at once
	$(BIN)/python -m tests.lanes all

test-deploy: $(VENV)/.installed-deploy   ## Ansible and the Debian package on three containers: root, systemd-nspawn, debootstrap; else skipped
	SOCKPQD_TEST_DEPLOY=1 $(BIN)/python -m pytest --capture=tee-sys tests/deploy

test-pythons: dev                    ## the quick tests with other Pythons, Debian's, and whether all agree: VERSIONS='3.11 3.13 3.14'; about 10 minutes each
	$(PIP_INSTALL) -e ./client -e '.[pythons]'
	$(BIN)/python -m tests.pythons $(VERSIONS)

$(VENV)/.installed-deploy: $(VENV)/.installed-dev
	$(PIP_INSTALL) -e ./client -e '.[deploy,deploy-tests,release]'
	touch $@

helm: $(TOOLS)/.helm-$(HELM_VERSION)          ## the program that renders deploy/helm, for its tests; needs Go

$(TOOLS)/.helm-$(HELM_VERSION):
	@mkdir -p $(TOOLS)
	GOBIN="$(CURDIR)/$(TOOLS)" go install helm.sh/helm/v3/cmd/helm@$(HELM_VERSION)
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

kombu-tests: dev                     ## kombu's own tests of transports, from its sources on the package index
	@test -e $(TOOLS)/kombu-$(KOMBU_VERSION)/t || { mkdir -p $(TOOLS) \
		&& $(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps \
			--no-binary kombu --dest $(TOOLS) kombu==$(KOMBU_VERSION) \
		&& tar -xzf $(TOOLS)/kombu-$(KOMBU_VERSION).tar.gz -C $(TOOLS); } \
		|| echo "no sources of kombu: its tests will be skipped"

celery-tests: dev                    ## Celery's own integration tests, from its sources on the package index, and what they import
	$(PIP_INSTALL) -e ./client -e ./integrations/kombu -e '.[celery]'
	@test -e $(TOOLS)/celery-$(CELERY_VERSION)/t || { mkdir -p $(TOOLS) \
		&& $(BIN)/python -m pip download --quiet --disable-pip-version-check --no-deps --no-binary celery \
			--dest $(TOOLS) celery==$(CELERY_VERSION) \
		&& tar -xzf $(TOOLS)/celery-$(CELERY_VERSION).tar.gz -C $(TOOLS); }

test-celery: celery-tests            ## Celery's own integration tests, about 20 minutes: NODES=3 BACKEND=sockpq; needs redis-server
	$(BIN)/python -m tests.kombu.celery_suite $(TOOLS)/celery-$(CELERY_VERSION) --nodes $(NODES) --backend $(BACKEND)

test-beanstalkd: dev                 ## tests of beanstalkd and its clients, from the folder UPSTREAM: NODES=3 AT=proxy, leader, follower
	$(BIN)/python -m tests.beanstalk.upstream $(UPSTREAM) --nodes $(NODES) --at $(AT)

test-http: dev                       ## the HTTP API: more random requests, generated clients in TypeScript and Go, REQUESTS=20000 while leaders are killed
	SOCKPQ_HTTP_EXAMPLES=40 $(BIN)/python -m pytest tests/http
	$(BIN)/python -m tests.http.generated
	$(BIN)/python -m tests.http.campaign --requests $(REQUESTS)

# The last botocore that speaks the Query protocol comes from the package index.
test-sqs: kombu-tests celery-tests   ## sockpq-sqs as Amazon's service: 172 checks, both protocols, on one node and three; kombu's and Celery's tests; FIFO while leaders are killed: MESSAGES=3000
	@test -e $(TOOLS)/sqs-query/botocore || $(PIP_INSTALL) --target $(TOOLS)/sqs-query botocore==1.31.80 boto3==1.28.80
	@test -e $(TOOLS)/sqs-kombu/kombu || $(PIP_INSTALL) --target $(TOOLS)/sqs-kombu 'kombu[sqs]==$(KOMBU_VERSION)' pytest-rerunfailures
	$(BIN)/python -m tests.sqs.campaign --slow --messages $(MESSAGES) --query $(TOOLS)/sqs-query --kombu $(TOOLS)/sqs-kombu \
		--celery $(TOOLS)/celery-$(CELERY_VERSION)

celery-faults: dev toxiproxy         ## 2,000 of Celery's tasks through each fault; what 100 killed programs and 1,000 questions leave
	$(BIN)/python -m tests.kombu.faults
	$(BIN)/python -m tests.kombu.leftovers

test-frameworks: dev                 ## outbox, Django, Dramatiq and Taskiq whole: PostgreSQL, MariaDB, other versions where they are installed
	FRAMEWORKS=1 $(BIN)/python -m pytest $(wildcard tests/outbox tests/django tests/dramatiq tests/taskiq)

frameworks-faults: ROUNDS = 500
frameworks-faults: dev               ## outbox and inbox while one of their programs dies or sleeps at any point: ROUNDS=500 NODES=3 (the leader is killed, too)
	$(BIN)/python -m tests.outbox.crash --rounds $(ROUNDS) --nodes $(NODES)
	$(BIN)/python -m tests.outbox.crash --rounds $(ROUNDS) --nodes $(NODES) --exact --stops 0.8

push-faults: dev                     ## 20,000 jobs as HTTP requests, alone, while the program is killed every second, and while the leader is
	$(BIN)/python -m tests.http.push.campaign
	$(BIN)/python -m tests.http.push.campaign --kill-every 1 --delay 0.05
	$(BIN)/python -m tests.http.push.campaign --kill-leader 3 --delay 0.05

laws: dev                            ## tests of hypothesis with other examples, TIMES=10 as many: rounds for MINUTES=60, by JOBS=1 processes
	$(BIN)/python -m tests.laws --minutes $(MINUTES) --times $(TIMES) --jobs $(JOBS)

sim: dev                             ## whole clusters, simulated: SEEDS=1000 runs from FIRST=0 on, by JOBS=1 processes; PAGED=1: all page jobs, GROUPED=1: of groups
	$(BIN)/python -m tests.sim --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS) $(if $(PAGED),--paged) $(if $(GROUPED),--grouped)

model: dev                           ## all states of a model of the replication, and its mistakes, about 20 minutes: docs/spec/model.md
	$(BIN)/python -m tests.model

sim-pulses: dev                      ## simulated clusters with gateways whose leaders fail: SEEDS, FIRST, JOBS, SECONDS=120, FAILOVERS=5
	$(BIN)/python -m tests.sim.gateway --seeds $(SEEDS) --first $(FIRST) --jobs $(JOBS) --seconds $(SECONDS) --failovers $(FAILOVERS)

moves: dev                           ## names move between two simulated clusters while pqctl and both leaders are killed: ROUNDS=1000 FIRST=0 JOBS=1
	$(BIN)/python -m tests.sim.clusters --rounds $(ROUNDS) --first $(FIRST) --jobs $(JOBS)

chaos: dev toxiproxy                 ## real processes with faults, each scenario once
	$(BIN)/python -m pytest tests/chaos

chaos-long: dev toxiproxy            ## real processes with faults, rotating: MINUTES=60; goes on after a failure
	$(BIN)/python -m tests.chaos --minutes $(MINUTES)

torture: dev toxiproxy               ## faults that come again and again, each for EACH=5 minutes in all; goes on where it was left
	$(BIN)/python -m tests.chaos --only "torture: *" --each-minutes $(EACH) --fork

chaos-results: dev                   ## TASKS=20000 with errors, retries and results while a leader is killed every 5 s: one result, one history
	$(BIN)/python -m tests.chaos.results --tasks $(TASKS)

damage: dev                          ## random damage to the files of one of three nodes under load: TIMES=10 rounds
	$(BIN)/python -m tests.system.damage_rounds --times $(TIMES)

mutants: dev                         ## mistakes in Raft and the journal, one at a time: what no test notices; ONLY='*/raft/*', JOBS=1, goes on
	nice $(BIN)/python -m tests.mutants --only '$(ONLY)' --jobs $(JOBS)

hostile: dev                         ## attacks on real nodes, beside an ordinary client; all of them as root only
	$(BIN)/python -m tests.hostile

docs: dev                            ## the documentation as a site, in build/site: open index.html
	$(PIP_INSTALL) -e ./client -e '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet
	@echo "The site is made: open build/site/index.html"

test-browser: dev                    ## the dashboard in chromium (Debian: chromium, chromium-driver); else skipped
	$(PIP_INSTALL) -e ./client -e '.[browser]'
	SOCKPQD_RECORDS=1000000 $(BIN)/python -m pytest tests/browser

demo: $(VENV)/.installed                        ## three nodes, real work, a killed leader; DIR=folder to hash
	@$(BIN)/python -m bench.demo $(if $(DIR),"$(DIR)")

play: $(VENV)/.installed                        ## three nodes that stay, a producer and workers; kill what you like, Ctrl-C ends it; CLUSTERS=2
	@$(BIN)/python -m bench.play --clusters $(CLUSTERS)

play-celery: dev                     ## the same with a worker and a producer of Celery's
	@$(BIN)/python -m bench.play --celery

play-sqs: dev                        ## the same with sockpq-sqs, and a producer and a consumer with boto3
	@$(BIN)/python -m bench.play --sqs

.PHONY: always                       # where git does not know what the sources are
dist: $(WHEEL)                        ## wheels and sources of sockpqd, sockpq and the integrations, with SHA256SUMS, in dist/; KEY= signs
	$(BIN)/python deploy/release/checksums.py dist $(KEY)

# What is there is made again only when a source is newer; the wheel of sockpqd is the last of its kind to be made.
$(WHEEL): $(SOURCES) | dev
	$(MAKE) --no-print-directory manual
	rm -f dist/*.whl dist/*.tar.gz dist/SHA256SUMS*
	$(BIN)/python -m build --outdir dist client
	for name in $(INTEGRATIONS); do $(BIN)/python -m build --outdir dist integrations/$$name || exit 1; done
	$(BIN)/python -m build --outdir dist .

proof: dist                           ## the installed wheels in network namespaces, all faults mixed, clients of all kinds: MINUTES=60 SEED=7; needs root (docs/PROOF.md)
	$(BIN)/python -m tests.proof.install dist .proof
	cd .proof/here && ../venv/bin/python -m tests.proof --what ../what.json --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) \
		--into "$(CURDIR)/proof" $(if $(PUBLISH),--publish) --keep "$(CURDIR)/proof-failed"

proof-peers: dev                      ## faults that act from outside, on SYSTEM=rabbitmq, nats or sockpqd: MINUTES=10 SEED=7; needs root (docs/PROOF.md)
	$(PIP_INSTALL) -e ./client -e '.[bench]'
	$(BIN)/python -m tests.proof.peers $(SYSTEM) --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) --into "$(CURDIR)/proof"

lock: dev                             ## the newest versions of what a release is built with, in deploy/release/requirements.lock
	$(PIP_INSTALL) -e ./client -e '.[release]'
	$(BIN)/python deploy/release/lock.py

deb: $(DEB)                           ## a Debian package of the server, for the Debian that builds it, in dist/; needs dpkg-deb
	$(BIN)/python deploy/release/checksums.py dist $(KEY)

# Times of files in packages are that of the newest commit, so that the same sources give the same bytes.
$(DEB): $(WHEEL) $(COMMITS)
	$(PIP_INSTALL) -e ./client -e '.[release]'
	rm -f dist/*.deb dist/*.cdx.json
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python deploy/debian/build.py dist

image: $(IMAGE)                         ## an OCI image of the package, without any registry, in dist/; root, debootstrap, umoci
	$(BIN)/python deploy/release/checksums.py dist $(KEY)

$(IMAGE): $(DEB)
	rm -f dist/*.oci.tar
	$(BIN)/python deploy/container/build_image.py dist

manual: $(VENV)/.installed           ## man pages, completions and docs/reference, from the programs
	$(BIN)/python deploy/manual/make.py
	$(BIN)/python client/tools/manual.py

build/generator: bench/generator/*.cpp bench/generator/*.hpp
	mkdir -p build
	$(CXX) -O2 -std=c++17 -Wall -Wextra -Werror bench/generator/*.cpp -o $@

bench-depth: dev                     ## ten million jobs waiting, most of them on disk; DEPTHS=100000,100000000 for more
	$(BIN)/python -m bench.load depth --depths $(DEPTHS) --hot-bytes 100000000 --priorities 1

bench-regions: dev                   ## a copy in another region, on a line with 200 ms, loss and a cut, as figures: RATE=10000 PUTS=1000000; needs root
	$(BIN)/python -m bench.regions --rate $(RATE) --jobs $(PUTS)

bench-record: dev build/generator    ## all tables and pictures of docs/BENCHMARKS.md, measured here: over an hour on a quiet machine; ONLY=depth
	$(PIP_INSTALL) -e ./client -e '.[bench]'
	$(BIN)/python -m bench.record $(if $(filter-out *,$(ONLY)),--only $(ONLY))

bench-plots: dev                     ## tables and pictures of docs/BENCHMARKS.md anew, from bench/results, and of docs/FAIRNESS.md
	$(BIN)/python -m bench.reports.tables bench/results/*.jsonl --into docs/BENCHMARKS.md
	$(BIN)/python -m bench.reports.plots bench/results/*.jsonl --to docs/benchmarks
	$(BIN)/python -m bench.fairness --into docs/FAIRNESS.md --pictures docs/pictures

clean:
	rm -rf $(VENV) $(TOOLS) build dist .mypy_cache .pytest_cache .ruff_cache
