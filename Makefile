# Each target does the set-up it needs, in .venv, with Python 3.11 or later, make and PyPI.
#   make serve ARGS="--port 9000 --database postgresql://..."

.DEFAULT_GOAL := help
.PHONY: help setup serve test test-changed test-clients test-rest test-all test-general test-wsgi test-distributed soak endurance fuzz bench bench-against lint lint-workflows \
	lint-deploy image compose format lock protocol reference docs screenshots dist test-oldest test-extras \
	test-installs sbom audit

# The first of these that is optimised, else the first. Those that pyenv builds are not, and take 1.3 times the CPU.
PYTHON := $(shell for which in 1 0; do for each in python3 /usr/bin/python3 python3.13 python3.12 python3.11 python3.14; do \
	$$each -c 'import ensurepip, sys, sysconfig; \
	optimised = sys.base_prefix == "/usr" or "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or ""); \
	sys.exit(sys.version_info < (3, 11) or optimised < int(sys.argv[1]))' $$which 2>/dev/null && echo $$each && exit; done; done)
BIN := .venv/bin
ARGS ?=
REF ?= main~50

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: .venv/.complete ## everything, for development; there is .venv/bin/tablegate afterwards

serve: .venv/.runtime ## serve on http://127.0.0.1:8000, data in ./tablegate.sqlite
	$(BIN)/tablegate serve $(ARGS)

# Tests start a hundred servers: what Python compiles is kept, whatever the environment says.
unexport PYTHONDONTWRITEBYTECODE
# Each process collects its own files alone (tests/support/tiers.py). Three, since tests also wait. ARGS="-n 0": in one process.
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist each --max-worker-restart 0
WORKERS := 3

test: .venv/.complete ## the whole behaviour in minutes, with Python alone: SQLite, and PostgreSQL where tests race or write SQL
	$(PYTEST) --tier test $(ARGS)

SINCE ?= main
test-changed: .venv/.complete ## about a minute: the tests nearest to what differs from SINCE=main, by imports
	$(BIN)/python -m tests.support.changed --since $(SINCE) -n 2 --dist loadfile --tier test $(ARGS)

test-clients: .venv/.complete ## tests that start foreign programs: other languages, browsers, nested pytest, wheels, documents
	$(PYTEST) --tier clients $(ARGS)

test-clients test-rest: WORKERS := 4 # these wait for processes
test-rest: .venv/.complete ## all that `make test-all` has and `make test` has not
	$(PYTEST) --tier clients --tier extended $(ARGS)

# Both parts run, even if the first one fails.
test-all: export TABLEGATE_TEST_COUNTS := $(CURDIR)/build/counts.txt
test-all: export TABLEGATE_TEST_EXAMPLES := full
test-all: .venv/.complete ## all tests, in about 15 minutes on two idle cores, with 100 examples of each property
	mkdir -p build && rm -f $(TABLEGATE_TEST_COUNTS)
	failed=0; for part in test test-rest; do $(MAKE) $$part || failed=1; done; \
	$(BIN)/python -m tests.support.tiers $(TABLEGATE_TEST_COUNTS); exit $$failed

test-general: .venv/.complete ## all tests with the fast paths switched off (docs/contribute/fast-paths.md)
	TABLEGATE_FAST_PATHS=off $(PYTEST) $(ARGS)

test-wsgi: .venv/.complete ## the dialects' tests through a WSGI server that is not ours
	TABLEGATE_TEST_ENTRY=wsgi $(BIN)/pytest tests/adapters tests/source_documents \
		tests/across_dialects/test_across_dialects.py tests/across_dialects/test_dynamodb_and_azure.py \
		tests/durability/test_crashes.py::test_a_killed_server_keeps_every_acknowledged_write_and_no_half_transaction $(ARGS)

# Tests of what can differ on a cluster. The first file kills nodes, so nothing else runs beside it.
test-distributed: .venv/.complete ## on a Citus cluster that it starts, or with URL= at the coordinator, URL2= at a worker
	TABLEGATE_TEST_DATABASE_URL=$(URL) TABLEGATE_TEST_SECOND_DATABASE_URL=$(URL2) $(BIN)/python -m tests.support.cluster \
		$(BIN)/pytest -o faulthandler_timeout=0 tests/durability/test_distributed.py $(ARGS)
	TABLEGATE_TEST_DATABASE_URL=$(URL) TABLEGATE_TEST_SECOND_DATABASE_URL=$(URL2) $(BIN)/python -m tests.support.cluster \
		$(BIN)/pytest -o faulthandler_timeout=0 -n 2 tests/contract tests/gateway/engine/rows tests/gateway/engine/streams \
		tests/gateway/engine/tables tests/gateway/features/global_tables tests/gateway/features/history \
		tests/gateway/features/local_transactions tests/gateway/features/search/test_random_queries.py \
		tests/gateway/features/test_example_capability.py \
		$(patsubst %,tests/gateway/engine/test_%.py,concatenated faults long_keys prefiltered_scans purging races slices) \
		tests/across_dialects/test_dynamodb_and_azure.py tests/gateway/features/vectors/test_vector_search.py \
		tests/durability/test_crashes.py::test_a_killed_server_keeps_every_acknowledged_write_and_no_half_transaction $(ARGS)

# A separate environment in build/, with the SDKs and tools of the tests as they are locked.
test-oldest: .venv/.complete ## tests with the oldest versions that pyproject.toml allows
	mkdir -p build
	$(BIN)/uv pip compile --quiet --resolution lowest-direct --python-version 3.11 pyproject.toml --output-file build/oldest.txt
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) build/oldest
	$(BIN)/uv pip install --quiet --python build/oldest --requirement requirements-dev.lock --override build/oldest.txt
	$(BIN)/uv pip install --quiet --python build/oldest --no-deps --editable .
	$(BIN)/uv pip check --python build/oldest
	build/oldest/bin/pytest -n 3 --dist each $(ARGS)

test-extras: dist ## each extra of the wheel in a clean environment
	$(BIN)/python -m tests.support.packages extras dist/*.whl

test-installs: dist ## the wheel on each Python of this machine, with the oldest and newest dependencies, by uvx and by pipx
	$(BIN)/python -m tests.support.packages installs dist/*.whl

soak: .venv/.complete ## the races and crashes at full length
	TABLEGATE_TEST_SOAK_SECONDS=$${TABLEGATE_TEST_SOAK_SECONDS:-60} $(BIN)/pytest -m soak -o faulthandler_timeout=0 $(ARGS)

endurance: .venv/.complete ## an hour of mixed load with faults, on each database: memory, descriptors, disk and latency stay flat
	TABLEGATE_TEST_SOAK_SECONDS=$${TABLEGATE_TEST_SOAK_SECONDS:-3600} $(BIN)/pytest -o faulthandler_timeout=0 \
		tests/durability/test_endurance.py $(ARGS)

fuzz: .venv/.complete ## the property-based tests, on new and many more examples
	TABLEGATE_TEST_EXAMPLES=fuzz $(BIN)/pytest -o faulthandler_timeout=0 $$(grep -rl '^from hypothesis' tests) $(ARGS)

bench: build/bench/.complete ## figures, side by side with other emulators
	build/bench/bin/python -m benchmarks $(ARGS)

build/bench/.complete: requirements-dev.lock
	$(PYTHON) -m venv build/bench
	build/bench/bin/python -m pip install --quiet --disable-pip-version-check --requirement $<
	build/bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	@touch $@

bench-against: build/bench/.complete ## this commit beside another one of ours, in pairs: make bench-against REF=main~50
	build/bench/bin/python -m benchmarks --dry --single none --dialects dynamodb,azuretable --contestants tablegate-full \
		--against $(REF) $(ARGS)

lint: .venv/.complete ## ruff, mypy, and vulture for code that nothing uses
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/vulture

lint-workflows: .venv/.complete ## actionlint and zizmor for .github (needs Go)
	$(BIN)/uv tool run --quiet 'zizmor==1.32.0' --quiet --offline .github
	go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

lint-deploy: ## compose-go and Helm for compose.yaml and deploy/ (needs Go)
	go run github.com/compose-spec/compose-go/v2/cmd@v2.9.1 -no-interpolation compose.yaml > /dev/null
	cd deploy/compose && go run github.com/compose-spec/compose-go/v2/cmd@v2.9.1 -no-interpolation compose.yaml > /dev/null
	go run helm.sh/helm/v3/cmd/helm@v3.19.2 lint --strict deploy/helm/tablegate \
		--set database=postgresql://user:password@host/db --set secretKey=sixteen-characters

# With Docker, or with Podman: CONTAINERS=podman. Podman keeps the health check only in Docker's format.
CONTAINERS ?= docker
image: ## the container image, built, run on a read-only file system, and measured
	BUILDAH_FORMAT=docker $(PYTHON) -m tests.support.image $(CONTAINERS)

compose: .venv/.complete ## deploy/compose in containers, while gateways are killed and replaced (needs Docker Compose)
	$(BIN)/python -m tests.support.compose $(CONTAINERS) compose

format: .venv/.complete ## what ruff can mend
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

reference: .venv/.complete ## the generated pages of docs/reference
	$(BIN)/python -m tests.support.reference_pages

dist: .venv/.complete ## the wheel and the sdist of HEAD in dist/, the same bytes each time
	rm -rf dist
	$(BIN)/python -m tests.support.packages build dist
	$(BIN)/uv tool run --quiet 'twine==7.0.0' check --strict dist/*

sbom: dist ## dist/sbom.cdx.json (CycloneDX) and dist/licenses.md, of the wheel with all extras
	$(BIN)/uv venv --quiet --clear --python $(PYTHON) build/runtime
	$(BIN)/uv pip install --quiet --python build/runtime --constraint requirements-dev.lock \
		"$$(echo dist/*.whl)[clouds,parquet,ion,otel,vectors,chinese,traffic,mcp]"
	sed "s/^dynamic = .*/version = \"$$(echo dist/*.whl | cut -d- -f2)\"/" pyproject.toml > build/pyproject.toml
	$(BIN)/uv tool run --quiet --from 'cyclonedx-bom==7.5.0' cyclonedx-py environment --output-reproducible \
		--pyproject build/pyproject.toml --output-file dist/sbom.cdx.json build/runtime
	$(BIN)/uv tool run --quiet 'pip-licenses==5.5.5' --python build/runtime/bin/python --format markdown \
		--output-file dist/licenses.md
	sed -i '/^|  /d' dist/licenses.md # what follows the first line of a name, where packages have a whole text there

audit: .venv/.complete ## known vulnerabilities of the locked versions. It asks PyPI, and fails if it cannot
	$(BIN)/uv tool run --quiet 'pip-audit==2.10.1' --strict --disable-pip --no-deps --requirement requirements.lock \
		|| { echo "Either versions have known vulnerabilities, listed above, or PyPI's database of them could not be asked:" \
			"then the lines above name an error of the connection, or a dependency that was not found. There is no offline copy."; \
			exit 1; }

docs: .venv/.complete ## the documentation site, in build/site
	$(BIN)/python -m tests.support.reference_pages modules
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/site

screenshots: .venv/.complete ## pictures of the console's pages, in build/screenshots and docs/images
	$(BIN)/python -m tests.support.console_screenshots

# grpcio-tools 1.60: what it generates runs on every protobuf from 4 on; later ones bind it to a major version.
protocol: .venv/.complete ## the module of Table Store's messages, after a change of the .proto
	$(BIN)/uv tool run --from 'grpcio-tools==1.60.2' --with 'setuptools<70' --python 3.11 python -m grpc_tools.protoc -Itablegate \
		--python_out=tablegate --pyi_out=tablegate tablegate/adapters/tablestore/wire/protocol/*.proto

COMPILE := $(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --custom-compile-command "make lock"
lock: .venv/.complete ## newest versions that pyproject.toml allows; what is tested is what is run
	$(COMPILE) --extra dev pyproject.toml --output-file requirements-dev.lock
	$(COMPILE) --constraint requirements-dev.lock pyproject.toml --output-file requirements.lock

# Users of containers often have no home folder. uv stops if it cannot make its cache there.
ifneq ($(shell test -w "$$HOME" && echo yes),yes)
export UV_NO_CACHE := 1
endif

# uv takes a tenth of pip's time, but does not read pip's configuration. pip installs where that names an index, and where
# there is no uv.
install = if [ -x $(BIN)/uv ] && ! $(BIN)/python -m pip config list | grep -q index-url; \
	then $(BIN)/uv pip install --python $(BIN)/python $(1); else $(BIN)/python -m pip install $(1); fi

.venv/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or later is needed, with venv (Debian and Ubuntu: apt-get install python3-venv)"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --only-binary :all: $$(grep '^uv==' requirements-dev.lock) || true

.venv/.runtime: requirements.lock pyproject.toml | .venv/bin/python
	@echo "Installing tablegate and its libraries in .venv, once."
	$(call install,--requirement requirements.lock)
	$(call install,--no-deps --editable .)
	@touch $@

.venv/.complete: requirements-dev.lock .venv/.runtime
	@echo "Installing the libraries for development in .venv, once."
	$(call install,--requirement requirements-dev.lock)
	@touch $@
