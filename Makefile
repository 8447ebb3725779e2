# Each target works alone on a fresh clone: it makes the virtual environment and installs the package.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: run test test-extras test-browser screenshots docs lint check readme clean

run: $(INSTALLED)  ## train a tied 2-LSTM until it has solved memorization
	$(BIN)/gridlstm train memorization --preset laptop --out runs/memorization --resume

test: lint check  ## everything that CI runs

lint: $(INSTALLED)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

# One thread per worker: two OpenMP threads on a busy machine are slower than one.
check: $(INSTALLED)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest --cov -q

test-extras: $(INSTALLED)  ## what needs submitit, a real Ray, huggingface_hub, ONNX, a tracker or Triton, which it installs
	$(BIN)/pip install --quiet -c constraints.txt -e '.[hub,onnx,ray,slurm,tensorboard,triton,wandb]'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 0 tests/test_sweeps_extras.py tests/test_hub.py tests/test_onnx.py \
		tests/test_trackers.py tests/test_triton.py
	TRITON_INTERPRET=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 0 tests/test_triton_interpreted.py
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 0 tests/test_readme.py -k export.md

test-browser: $(INSTALLED)  ## what needs Chromium and its driver: the pages
	$(BIN)/pip install --quiet -c constraints.txt -e '.[browser]'
	REQUIRE_BROWSER=1 OMP_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 0 tests/browser

screenshots: $(INSTALLED) docs  ## the pictures of pages in docs/screenshots
	$(BIN)/pip install --quiet -c constraints.txt -e '.[browser]'
	SCREENSHOTS=docs/screenshots REQUIRE_BROWSER=1 OMP_NUM_THREADS=1 \
		$(BIN)/python -m pytest -q -n 0 tests/browser -k screenshot

docs: $(INSTALLED)  ## the site, docs/_build/html/index.html; reading it needs no network
	$(BIN)/pip install --quiet -c constraints.txt -e '.[docs]'
	mkdir -p docs/_build/extra
	$(BIN)/gridlstm demo --no-open --out docs/_build/extra/demo-page.html
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -b html docs docs/_build/html

readme: $(INSTALLED)  ## the tables and headline figure of README.md and docs/, from results/
	$(BIN)/python tools/readme_tables.py

clean:
	rm -rf $(VENV) .coverage* .hypothesis .mypy_cache .pytest_cache .ruff_cache

# PyTorch first and pinned: whatever requires it would otherwise pull its newest and largest build.
$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet -c constraints.txt torch numpy
	$(BIN)/pip install --quiet -c constraints.txt -e '.[dev]'
	touch $(INSTALLED)
