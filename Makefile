# Everything here works on a machine that has only Python 3.11 and make.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
LOWEST := .venv-lowest
# What the demo needs, and nothing that developers need; where all of it is there, that will do.
DEMO := $(if $(wildcard $(VENV)/.done),$(VENV),.venv-demo)
BIN := $(VENV)/bin
PYTEST := -m pytest -q -n 2 --dist worksteal

.PHONY: setup services check docs test test-long test-pythons build coverage mutation bench accuracy demo lock clean

setup: $(VENV)/.done

# The folder is moved into place only when it is whole, so an interrupted set-up starts afresh.
define make_venv
	@echo "Setting up $(1) from $(2) ..."
	@rm -rf $(1)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dplinear needs Python 3.11 or newer: set PYTHON=")'
	@$(PYTHON) -m venv $(1)
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r $(2)
	@$(1)/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(1)/.done
endef

$(VENV)/.done: pyproject.toml requirements/dev.txt
	$(call make_venv,$(VENV),requirements/dev.txt)

$(LOWEST)/.done: pyproject.toml requirements/lowest.txt
	$(call make_venv,$(LOWEST),requirements/lowest.txt)

.venv-demo/.done: pyproject.toml requirements/run.txt
	@echo "Setting up .venv-demo from requirements/run.txt ..."
	@rm -rf .venv-demo
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dplinear needs Python 3.11 or newer: set PYTHON=")'
	@$(PYTHON) -m venv .venv-demo
	@.venv-demo/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@touch .venv-demo/.done

# What tests with real components need from the operating system, where it is missing.
services:
	@sh .ci/services

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(MAKE) --no-print-directory docs

# The pages in site/, which open from disk; a warning is an error, and nothing is fetched.
docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --site-dir site

# The newest pinned dependencies, then the lowest allowed ones, where no test may ask for more.
test: setup $(LOWEST)/.done
	$(BIN)/python $(PYTEST) -m "not long"
	CI=true $(LOWEST)/bin/python $(PYTEST) -m "not long and not heavy and not oracle and not accounting and not engine"

# Hours. Where it is interrupted, it goes on where it left off, as long as no file has changed.
test-long: setup
	$(BIN)/python $(PYTEST) -m long --resume

# Every declared Python that is on this machine, each in an environment of its own.
test-pythons: setup
	@$(BIN)/python tests/pythons.py | while IFS== read -r version python; do \
		$(MAKE) --no-print-directory PYTHON=$$python VENV=.venv-$$version setup && \
		.venv-$$version/bin/python $(PYTEST) -m "not long" || exit 1; done

# A wheel and an sdist in dist/.
build: setup
	$(BIN)/python -m hatchling build

# Lines and branches that the tests run; the four rooms that guard privacy must have all of them.
GUARDED := src/dplinear/privacy/*,src/dplinear/noise/*,src/dplinear/ledger/*,src/dplinear/exact/gram.py
coverage: setup
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST) -m "not long"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --skip-covered --fail-under=95
	$(BIN)/coverage report --skip-covered --fail-under=100 --include='$(GUARDED)'

# Mistakes planted one at a time (docs/mutation.md): hours; what was tried already is not tried again.
mutation: export PYTHONPATH := src:tests
mutation: setup
	for room in privacy gram noise ledger postgres; do \
		$(BIN)/python -m mutation check --room $$room || $(BIN)/python -m mutation measure --room $$room || exit; \
		$(BIN)/python -m mutation run --room $$room || exit; \
	done
	$(BIN)/python -m mutation table

bench: setup
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/calibration.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/reals.py
	$(BIN)/python benchmarks/gram.py
	$(BIN)/python benchmarks/passes.py
	$(BIN)/python benchmarks/units.py
	$(BIN)/python benchmarks/missing_cells.py
	$(BIN)/python benchmarks/mi_sketch.py
	$(BIN)/python benchmarks/rows.py
	$(BIN)/python benchmarks/rows.py --mechanism projection
	$(BIN)/python benchmarks/coinpress.py
	$(BIN)/python benchmarks/bounds.py
	$(BIN)/python benchmarks/fit_time.py
	$(BIN)/python benchmarks/erm.py
	$(BIN)/python benchmarks/repairs.py
	$(BIN)/python benchmarks/coverage.py
	$(BIN)/python benchmarks/ledger.py

# Private regressions beside their rivals: under an hour.
accuracy: setup
	$(BIN)/python benchmarks/accuracy.py --cells core --repetitions 20

demo: $(DEMO)/.done
	@PYTHONPATH=src $(DEMO)/bin/python -m dplinear demo

# Compile the hash-pinned requirements anew; no file may name an index.
LOCK := --quiet --generate-hashes --allow-unsafe --strip-extras --no-emit-index-url \
	--no-emit-find-links --no-emit-trusted-host --no-emit-options --no-header
lock:
	rm -rf .venv-lock && $(PYTHON) -m venv .venv-lock && .venv-lock/bin/pip install --quiet pip-tools
	.venv-lock/bin/pip-compile $(LOCK) --upgrade --extra accounting --extra dask --extra spark --extra postgres --extra formulas --extra plots --extra docs --extra dev -o requirements/dev.txt pyproject.toml
	.venv-lock/bin/pip-compile $(LOCK) -c requirements/dev.txt -o requirements/run.txt pyproject.toml
	.venv-lock/bin/pip-compile $(LOCK) -o requirements/lowest.txt requirements/lowest.in
	rm -rf .venv-lock

clean:
	rm -rf $(VENV) $(LOWEST) .venv-demo .venv-lock .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis
