# make demo    train a model through a P4 switch on this machine
# make test    everything: C++ unit tests and pytest
# make help    the other targets
PYTHON ?= python3
VENV ?= .venv
JOBS ?= 2
BIN := $(VENV)/bin
export PATH := $(abspath $(BIN)):$(PATH)

SOURCES := $(shell find csrc p4 -name '*.cpp' -o -name '*.hpp' -o -name '*.p4' -o -name CMakeLists.txt)
TOOLS := $(VENV)/.tools
INSTALLED := $(VENV)/.installed

.PHONY: help install demo test test-cpp test-python nightly bench lint format clean
.DEFAULT_GOAL := help

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# Build tools first and without isolation, so that the C++ build directory is kept between runs.
$(TOOLS): constraints.txt
	@echo "creating $(VENV) and installing the build tools"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "pycollective needs Python 3.10 or newer; found $$($(PYTHON) --version). Set PYTHON=..."; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt \
	  scikit-build-core pybind11 cmake ninja
	@touch $@

$(INSTALLED): $(TOOLS) pyproject.toml CMakeLists.txt $(SOURCES)
	@echo "building the C++ core and installing pycollective (a few minutes the first time)"
	@CMAKE_BUILD_PARALLEL_LEVEL=$(JOBS) $(BIN)/python -m pip install -q --disable-pip-version-check \
	  -c constraints.txt --no-build-isolation -e '.[dev]'
	@touch $@

install: $(INSTALLED) ## build and install into .venv

demo: $(INSTALLED) ## train through a P4 switch and compare with gloo
	@$(BIN)/pycollective demo

test: test-cpp test-python ## C++ unit tests and pytest

test-cpp: $(INSTALLED)
	@$(BIN)/cmake -G Ninja -S . -B build/tests -DCMAKE_BUILD_TYPE=Release \
	  -DPYCOLLECTIVE_PYTHON=OFF -DPYCOLLECTIVE_TESTS=ON > build/tests-configure.log || { \
	  cat build/tests-configure.log; exit 1; }
	@$(BIN)/cmake --build build/tests -j $(JOBS)
	@$(BIN)/ctest --test-dir build/tests --output-on-failure -j $(JOBS)

test-python: $(INSTALLED)
	@$(BIN)/python -m pytest

nightly: $(INSTALLED) ## the long tests
	@$(BIN)/python -m pytest -m nightly --timeout 3600

bench: $(INSTALLED) ## the figures in benchmarks/
	@$(BIN)/python benchmarks/switch_throughput.py
	@$(BIN)/pycollective bench all_reduce -b 4 -e 16M -f 4 -n 20 -w 5 --ranks 4 --compare gloo

lint: $(INSTALLED) ## ruff, mypy and clang-format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@find csrc -name '*.cpp' -o -name '*.hpp' | xargs $(BIN)/clang-format --dry-run --Werror

format: $(INSTALLED) ## rewrite the sources in the project's format
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .
	@find csrc -name '*.cpp' -o -name '*.hpp' | xargs $(BIN)/clang-format -i

clean: ## remove what was built, and the virtual environment
	rm -rf $(VENV) build demo-out
