# Needs make and Python 3.11 or newer with venv; `make test PYTHON=python3.12` picks another one.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

# One thread for each process: test workers and timings do not compete for cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1

.DEFAULT_GOAL := help
.PHONY: help install demo test test-quick fuzz-properties lint dist bench bench-coverage bench-effects bench-scale bench-gpu \
	bench-cli bench-maps bench-uci bench-peers bench-comparison bench-mixed bench-varying-noise \
	bench-correlated-noise bench-kriging bench-large-mixed bench-targets mutants fuzz reproduce docs docs-short docs-links clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## /  make \1\t/p' $(firstword $(MAKEFILE_LIST))

install: $(VENV)/.install  ## install into .venv: the library, the command line and reports

demo: $(VENV)/.install  ## fit, predict and explain a small table; leaves a report to look at
	$(BIN)/ulmus demo build/demo

test: lint  ## run the static checks, then all tests
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2

test-quick: $(VENV)/.test  ## run the tests that are not slow, in under two minutes
	$(ONE_THREAD) $(BIN)/python -m pytest -n 2 -q -m "not slow and not statistics and not browser"

# Hypothesis repeats few examples in CI; here it searches for new ones.
fuzz-properties: $(VENV)/.test  ## run the property tests with many random examples
	$(ONE_THREAD) HYPOTHESIS_PROFILE=search $(BIN)/python -m pytest -n 2 -q -m "properties"

lint: $(VENV)/.test  ## check style, types, names and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/check_names.py

# What a user gets: both archives, each installed into an environment of its own.
dist: $(VENV)/.created  ## build a wheel and an sdist, and test both in clean environments
	$(PIP) build
	rm -rf dist build/check
	$(BIN)/python -m build --outdir dist
	for archive in dist/*.whl dist/*.tar.gz; do \
	    $(ONE_THREAD) sh benchmarks/check_archive.sh "$(PYTHON)" "$$archive" || exit 1; \
	done

bench: $(VENV)/.test  ## time the numerical core on one thread
	$(ONE_THREAD) $(BIN)/python benchmarks/core.py

bench-coverage: $(VENV)/.test  ## simulate the coverage of intervals, on two cores
	$(ONE_THREAD) $(BIN)/python benchmarks/coverage.py

bench-varying-noise: $(VENV)/.test  ## simulate standard errors and intervals where the noise varies tenfold
	$(ONE_THREAD) $(BIN)/python benchmarks/varying_noise.py

bench-effects: $(VENV)/.test  ## simulate the error bars of averages, differences, slopes and curves
	$(ONE_THREAD) $(BIN)/python benchmarks/effects.py

bench-scale: $(VENV)/.test  ## streams, files, a cluster and threads
	$(BIN)/python benchmarks/scale.py

bench-gpu: $(VENV)/.test  ## fit a hundred million rows on a CUDA card; needs torch
	$(BIN)/python benchmarks/gpu.py

bench-cli: $(VENV)/.test  ## time and memory of `ulmus fit` and `predict`, small and large tables
	$(BIN)/python benchmarks/command_line.py

bench-maps: $(VENV)/.test  ## learned maps: error, relevance and time of default fits
	$(BIN)/python benchmarks/maps.py

bench-uci: $(VENV)/.test  ## nine standard data sets beside other models; needs DATA=folder
	$(ONE_THREAD) $(BIN)/python benchmarks/uci.py --data '$(DATA)'

bench-peers: $(VENV)/.test  ## intervals of UncELMe, MAPIE and a Gaussian process beside ours; needs DATA=folder
	$(ONE_THREAD) $(BIN)/python benchmarks/peers.py --data '$(DATA)'

# CatBoost, pytabkit and xrfm are optional: what is not installed is skipped with a note.
bench-comparison: $(VENV)/.test  ## accuracy, intervals and time beside CatBoost, RealMLP, TabM, xRFM, boosting and a Gaussian process; DATA=folder is optional
	$(ONE_THREAD) $(BIN)/python benchmarks/comparison.py --data '$(DATA)'

bench-mixed: $(VENV)/.test  ## tables with categories, missing values and dates beside boosting; DATA=folder is optional
	$(ONE_THREAD) $(BIN)/python benchmarks/mixed_tables.py --data '$(DATA)'

bench-correlated-noise: $(VENV)/.test  ## standard errors, alpha and cost with correlated errors
	$(ONE_THREAD) $(BIN)/python benchmarks/correlated_noise.py
	$(ONE_THREAD) $(BIN)/python benchmarks/correlated_averages.py

bench-kriging: $(VENV)/.test  ## kriging of residuals beside ordinary kriging; needs DATA=folder
	$(ONE_THREAD) $(BIN)/python benchmarks/kriging.py --data '$(DATA)'

# pygam fits the oracles, and is needed for nothing else.
bench-targets: $(VENV)/.test  ## positive, counted and bounded targets beside oracle GLMs and GAMs; about an hour
	$(PIP) pygam
	$(ONE_THREAD) $(BIN)/python benchmarks/targets.py distributions --replications 6
	$(ONE_THREAD) $(BIN)/python benchmarks/targets.py effects --replications 100

bench-large-mixed: $(VENV)/.test  ## time and memory of 5 million rows of Parquet with categories and dates
	$(ONE_THREAD) $(BIN)/python benchmarks/large_mixed_file.py

mutants: $(VENV)/.test  ## change formulas of the core one by one; does a test notice?
	$(ONE_THREAD) $(BIN)/python benchmarks/mutants.py

fuzz: $(VENV)/.test  ## mangle tables and model files 300 times; is each refused in one line?
	$(ONE_THREAD) $(BIN)/python benchmarks/fuzz.py

reproduce: $(VENV)/.test  ## the paper's tables and figures, with a tenth of its replications
	$(ONE_THREAD) $(BIN)/python -m reproduction all --quick

# Warnings are errors. The gallery runs once; `make docs` again runs only the scripts that changed, and
# writes all pages (-a): the search loses the index entries of pages that are not written.
SPHINX = $(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -j 2 -d build/docs/doctrees docs
SAY = @printf '%s\n'

docs: $(VENV)/.test  ## build the site with its gallery, check code, links and layout: build/docs/html
	$(SAY) "1/4  Pages, and the scripts of the gallery that changed (about 4 minutes the first time)"
	@$(SPHINX) -a -b html build/docs/html
	$(SAY) "2/4  The code of the pages, and what it prints (about 2 minutes)"
	@$(SPHINX) -b doctest build/docs/doctest
	$(SAY) "3/4  Links between the pages"
	@$(BIN)/python docs/check_links.py build/docs/html
	$(SAY) "4/4  Widths on a desktop and a phone (about a minute; needs chromium)"
	@$(BIN)/python docs/check_layout.py build/docs/html
	$(SAY) "Open build/docs/html/index.html"

docs-short: $(VENV)/.test  ## the same in a minute, without running the gallery: build/docs/short
	$(SAY) "Pages without the outputs of the gallery (about half a minute)"
	@$(SPHINX) -D plot_gallery=0 -d build/docs/short-doctrees -a -b html build/docs/short
	$(SAY) "Open build/docs/short/index.html"

docs-links: $(VENV)/.test  ## follow the links to other sites; needs the network
	$(SPHINX) -D plot_gallery=0 -b linkcheck build/docs/links

clean:  ## remove the virtual environment, caches and build output
	rm -rf docs/gallery docs/reference/generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.created:
	$(PYTHON) -m venv $(VENV)
	touch $@

# The package is installed in place, so only a change of pyproject.toml asks for a new install.
$(VENV)/.install: pyproject.toml | $(VENV)/.created
	$(PIP) --editable '.[cli,report,onnx]'
	touch $@

# UncELMe, the authors' program and a test oracle, asks for a package that no longer exists
# (sklearn); everything it needs is there already.
$(VENV)/.test: pyproject.toml | $(VENV)/.created
	$(PIP) --editable '.[test,docs]'
	$(PIP) --no-deps UncELMe==1.1
	touch $@
