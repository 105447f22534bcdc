# make demo      set up, compress a real covariance, print the report and the picture's path
# make test      set up, lint, run every test that needs no GPU and takes seconds, on all cores
# make kernels   set up, compile every instance of the kernels for every architecture: some minutes, no GPU needed
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

.PHONY: demo test kernels lint bench clean

demo: $(STAMP)
	mkdir -p demo
	$(BIN)/h2compress data/jacksboro.h5 -o demo/jacksboro-h2.h5 --covariance exponential --length-scale 1000 \
	    --rtol 1e-6 --report demo/jacksboro.json --plot demo/jacksboro.png
	$(BIN)/h2info demo/jacksboro-h2.h5 --check

test: lint
	$(BIN)/python -m pytest -n logical --dist loadfile -m "not gpu and not slow"

kernels: $(STAMP)
	$(BIN)/python -m pytest -m "slow and not gpu" tests

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

bench: $(STAMP)
	$(BIN)/python -m h2gpu.apps.benchmarks.compress

$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "h2gpu needs Python 3.11 or newer: make PYTHON=/path/to/python3"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) demo build dist *.egg-info
