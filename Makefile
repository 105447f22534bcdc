# make demo      set up, compress a real covariance, print the report and the picture's path
# make test      set up, lint, check types, run every test that needs no GPU and takes seconds, on all cores
# make figures   measure every published table again, on all GPUs that are there; DEVICE=cpu or cuda, DATA=folder of the benchmark data,
#                LIMIT=seconds for all to begin in, ONLY="TABLE …" for some of them; JOBS commands at once on the CPU, of CORES=2 each
# make kernels   set up, compile every instance of the kernels for every architecture, run what else takes minutes: no GPU needed
# make fuzz-short  random cases against oracles, some seconds a battery; the seed is drawn and printed, or SEED=… (tests/fuzz)
# make fuzz      the same for TIME seconds a battery, then fuzzing guided by coverage; needs atheris: pip install -e '.[fuzz]'
# make sanitize  the fewest tests that launch every kernel, under compute-sanitizer: needs GPUs (GPUS=0,1) and the CUDA toolkit
# make docs      set up, build the documentation site, docs/_build/html: its examples run, warnings are errors
# make wheel     set up, compile the kernels that users meet for ARCHITECTURES, build dist/*.whl with them and check it: no GPU needed
# make sdist     build dist/*.tar.gz, the sources, and check what it holds
# make man       write the commands' man pages, man/*.1, from their options
# make packages  wheel and sdist, each installed into a new environment and used there
# make floor     the tests with the lowest versions of dependencies; TESTS="FILE …" for some of them
# make matrix    the tests under every Python from 3.11 on that is found; TESTS as for floor
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
DOCS   := $(VENV)/.docs-installed

ARCHITECTURES ?= sm_80,sm_90,sm_100
DEVICE ?= cpu
DATA   ?= data
SHORT  ?= 7
TIME   ?= 3600
GPUS   ?= 0
SLICES ?= 14

# Processes that tests start find the package compiled.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test kernels fuzz fuzz-short sanitize wheel sdist man packages floor matrix lint bench figures clean

demo: $(STAMP)
	mkdir -p demo
	$(BIN)/h2compress data/jacksboro.h5 -o demo/jacksboro-h2.h5 --covariance exponential --length-scale 1000 \
	    --rtol 1e-6 --report demo/jacksboro.json --plot demo/jacksboro.png
	$(BIN)/h2info demo/jacksboro-h2.h5 --check

# A worker a core: BLAS's own threads would take cores from other workers.
test: lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -n logical --dist loadfile -m "not gpu and not slow"

kernels: $(STAMP)
	$(BIN)/python -m pytest -m "slow and not gpu" tests

FUZZ := PYTHONPATH=tests/support/oracles OPENBLAS_NUM_THREADS=1 $(BIN)/python tests/fuzz

fuzz-short: $(STAMP)
	$(FUZZ)/run.py --seconds $(SHORT) $(if $(SEED),--seed $(SEED))

fuzz: $(STAMP)
	$(FUZZ)/run.py --seconds $(TIME)
	for target in expression covariance matrix; do $(FUZZ)/guided.py $$target -max_total_time=$(TIME) || exit 1; done

sanitize: $(STAMP)
	rm -rf .reached
	PYTHONPATH=tests/support/sanitizer REACHED=.reached $(BIN)/python -m pytest -q -m gpu -p reached -n $(SLICES) tests
	$(BIN)/python tests/support/sanitizer/sanitize.py --reached .reached --jobs $(SLICES) --each 4 --devices $(GPUS)

docs: $(DOCS)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html
	@echo docs/_build/html/index.html

wheel: $(STAMP)
	$(BIN)/python -m h2gpu.apps.packaging.compile_ahead --architectures $(ARCHITECTURES)
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	$(BIN)/python -m h2gpu.apps.packaging.check_wheel --architectures $(ARCHITECTURES) dist/*.whl

sdist: $(STAMP) man
	rm -rf dist/*.tar.gz
	$(BIN)/python -m h2gpu.apps.packaging.check_sdist --build dist

man: $(STAMP)
	$(BIN)/python -m h2gpu.apps.packaging.man_pages

packages: wheel
	$(MAKE) sdist
	$(BIN)/python -m h2gpu.apps.packaging.try_packages dist/*.whl dist/*.tar.gz

floor: $(STAMP)
	$(PYTHON) -m venv .floor
	$(BIN)/python -m h2gpu.apps.packaging.floor > .floor/constraints.txt
	.floor/bin/python -m pip install --quiet --disable-pip-version-check -c .floor/constraints.txt --editable ".[tests]"
	OPENBLAS_NUM_THREADS=1 .floor/bin/python -m pytest -q -n logical -p no:cacheprovider -m "not gpu and not slow" $(TESTS)

matrix: $(STAMP)
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m h2gpu.apps.packaging.matrix $(TESTS)

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(STAMP)
	$(BIN)/python -m h2gpu.apps.benchmarks.compress

figures: $(STAMP)
	$(BIN)/python -m h2gpu.apps.benchmarks.figures --device $(DEVICE) --data $(DATA) $(if $(LIMIT),--limit $(LIMIT)) \
	    $(if $(ONLY),--only $(ONLY)) $(if $(JOBS),--jobs $(JOBS)) $(if $(CORES),--cores $(CORES))

# Compiled on all cores, and what is hardly imported not at all: pip takes 26 seconds for that, on one core.
$(STAMP): pyproject.toml
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "h2gpu needs Python 3.11 or newer: make PYTHON=/path/to/python3"'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --editable ".[dev]"
	$(BIN)/python -m compileall -qq -j 0 -x '/(tests?|fontTools|mypy|pip|pygments|setuptools)/' $(VENV)/lib || true
	touch $(STAMP)

$(DOCS): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	touch $(DOCS)

clean:
	rm -rf $(VENV) demo build dist docs/_build docs/generated *.egg-info
