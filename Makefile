# Two commands do all their set-up in .venv: `make demo` and `make test`.

VENV := .venv
PYTHON := $(VENV)/bin/python
INSTALLED := $(VENV)/.installed
LINKS := build/links
CONSTRAINTS := constraints.txt
TORCH := 2.14.1

.PHONY: demo test versions lint types format coverage generated benchmarks fuzz load deep clean

N := 1000

demo: $(INSTALLED)
	$(PYTHON) samples/image_and_text.py

test: $(INSTALLED)
	$(PYTHON) -m pytest -n 2 --dist worksteal tests

# The suite with another version of torch, in an environment of its own: make versions TORCH=2.14.1
versions:
	mkdir -p build
	sed 's/^torch==.*/torch==$(TORCH)/' constraints.txt > build/constraints-$(TORCH).txt
	$(MAKE) test VENV=build/torch-$(TORCH) CONSTRAINTS=build/constraints-$(TORCH).txt

lint: $(INSTALLED)
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .

# mypy finds the namespace package through a tree of links.
types: $(INSTALLED)
	mkdir -p $(LINKS)/pelton
	ln -sfn $(CURDIR)/aot $(LINKS)/pelton/aot
	ln -sfn $(CURDIR)/cli $(LINKS)/pelton/cli
	ln -sfn $(CURDIR)/codegen $(LINKS)/pelton/codegen
	ln -sfn $(CURDIR)/runtime $(LINKS)/pelton/runtime
	MYPYPATH=$(LINKS) $(VENV)/bin/mypy -p pelton.aot -p pelton.cli -p pelton.codegen -p pelton.runtime

format: $(INSTALLED)
	$(VENV)/bin/ruff format .
	$(VENV)/bin/ruff check --fix .

# Operators and models one by one, each in a child process; goes on where it stopped.
coverage: $(INSTALLED)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[coverage]"
	$(PYTHON) -m tests.coverage.run models
	$(PYTHON) -m tests.coverage.run ops

# Programs of many operators, N static and N dynamic ones; goes on where it stopped.
generated: $(INSTALLED)
	$(PYTHON) -m tests.generated.run --count $(N)

# 10,000 mutations of every format of file, each read in a child process.
fuzz: $(INSTALLED)
	$(PYTHON) -m tests.fuzz.run

# Threads, hundreds of thousands of calls, hundreds of loads.
load: $(INSTALLED)
	$(PYTHON) -m pytest -n 0 -m load tests/load

# The cases of long tests that the suite leaves out.
deep: $(INSTALLED)
	$(PYTHON) -m pytest -n 2 --dist worksteal -m deep tests

benchmarks: $(INSTALLED)
	$(PYTHON) benchmarks/overhead.py
	$(PYTHON) benchmarks/export_time.py
	$(PYTHON) benchmarks/memory.py
	$(PYTHON) benchmarks/archives.py
	$(PYTHON) benchmarks/compile_cache.py
	$(PYTHON) benchmarks/optimization_levels.py
	$(PYTHON) benchmarks/speed.py

clean:
	rm -rf build dist out $(VENV) *.egg-info .mypy_cache .pytest_cache .ruff_cache

$(INSTALLED): pyproject.toml $(CONSTRAINTS)
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) torch
	$(PYTHON) -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[dev,samples]"
	touch $@
