# SPDX-License-Identifier: Apache-2.0
# A thin front end for CMake's presets. `make demo` and `make test` install missing packages, build and run; the other
# targets are for developers.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
FUZZ_SECONDS ?= 600
FUZZ_TARGETS ?=

# $(call BUILD,PRESET,OPTIONS…) configures and builds, $(call CTEST,PRESET,OPTIONS…) runs its tests. A failing tool ends
# the recipe. A folder that was configured with another ggml is configured from scratch, since CMake would keep half of
# the old settings.
WERROR = -DWINNOW_WERROR=$(if $(CI),ON,OFF)
# CI compiles like a new machine: without a compiler cache, and therefore several files at a time.
CCACHE = $(if $(CI),,$(shell command -v ccache))
SPEED = -DCMAKE_CXX_COMPILER_LAUNCHER=$(CCACHE) -DWINNOW_JUMBO=$(if $(CCACHE),OFF,ON)
CONFIGURE = mkdir -p build; WINNOW_DEPS=$$(tools/get-deps.sh); export WINNOW_DEPS; \
	fresh=$$(grep -qsF "CMAKE_PREFIX_PATH:UNINITIALIZED=$$WINNOW_DEPS" build/$(1)/CMakeCache.txt || echo --fresh); \
	cmake $$fresh --preset $(1) $(WERROR) $(SPEED) $(2) >build/$(1).log 2>&1 || { cat build/$(1).log; exit 1; }
BUILD = $(call CONFIGURE,$(1),$(2)); cmake --build build/$(1)
CLANG = -DCMAKE_C_COMPILER=$(word 1,$(shell command -v clang-16 clang)) -DCMAKE_CXX_COMPILER=$(word 1,$(shell command -v clang++-16 clang++))
MODEL = WINNOW_TEST_MODEL=$$(tools/get-model.sh); export WINNOW_TEST_MODEL
# With nvcc, CI compiles the kernels for NVIDIA GPUs.
NVCC = $(firstword $(shell command -v nvcc) $(wildcard /usr/local/cuda/bin/nvcc))
CUDA = $(if $(NVCC),-DWINNOW_CUDA=ON -DCMAKE_CUDA_COMPILER=$(NVCC))
# Three at a time, even on two cores: a third of the tests' time is waiting.
CTEST = ctest --test-dir build/$(1) --output-on-failure -j 3 $(2)
# In a separate environment, if pip can make one.
PYTHON = $$(python=$$(tools/python-with.sh tools/python-requirements.txt -c "import sys; print(sys.executable)") && \
	echo -DWINNOW_PYTHON=ON -DPython_EXECUTABLE=$$python)
SOURCES = git ls-files '*.cc' '*.h'
CLANG_FORMAT = $(or $(firstword $(shell command -v clang-format-14)),clang-format)

.PHONY: help demo test build python bench install dist results-page plots check check-format check-border check-asan check-tsan check-fuzz \
	check-fuzz-python format tidy

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 20

# CI also builds the benchmark programs, which must compile, and the Python package, which is tested.
build: ## build the command, the library and the tests
	@$(call BUILD,release,$(if $(CI),-DWINNOW_BENCH=ON -DWINNOW_BORDER=OFF $(CUDA) $(PYTHON)))

python: ## the same with the Python package, in build/release/python
	@$(call BUILD,release,$(PYTHON)) --target winnow_python_stub

demo: ## ask a question about a long text: full cache, streaming-llm and snapkv side by side
	@tools/get-deps.sh packages; tools/get-model.sh >/dev/null & $(call BUILD,release) --target winnow_command; \
	wait $$!; $(MODEL); WINNOW=build/release/winnow WINNOW_MODEL=$$WINNOW_TEST_MODEL tools/demo.sh

# CI runs the tests labelled `border` only under sanitizers.
test: build ## build and run all tests
	@$(MODEL); $(call CTEST,release,$(if $(CI),-LE border))

bench: ## build the benchmark programs into build/release/bench
	@$(call BUILD,release,-DWINNOW_BENCH=ON)

install: build ## cmake --install, to PREFIX (default /usr/local)
	@cmake --install build/release --prefix $(or $(PREFIX),/usr/local)

dist: ## packages in build/dist: a wheel, a .deb, a tar.gz, a Containerfile
	@tools/dist.sh

results-page: ## tables and plots of an evaluation's records (RECORDS: their folders) as build/results.html
	@test -n "$(RECORDS)" || { echo "name the folders of records: make results-page RECORDS=DIR" >&2; exit 2; }
	@$(call BUILD,release) --target winnow_command; build/release/winnow eval report $(RECORDS) -o build/results.html

# Names of packed records (docs/records), by plot. Time needs records of eval --alone.
PLOT_BYTES = fidelity
PLOT_TIME = needles-alone
# $(call PLOT,NAMES,FILE,OPTIONS…)
PLOT = tools/records.py unpack build/records $(1); \
	build/release/winnow eval plot $(addprefix build/records/,$(1)) $(3) -o docs/plots/$(2).svg

plots: ## draw the plots of docs/plots anew from docs/records
	@$(call BUILD,release) --target winnow_command; mkdir -p docs/plots; \
	$(call PLOT,$(PLOT_BYTES),quality-over-bytes,--quality kl --over bytes); \
	$(call PLOT,$(PLOT_TIME),quality-over-time,--over time)

check: check-format test tidy check-asan check-tsan ## all checks but the fuzzers: before you send a change

check-format: ## that clang-format would change nothing
	@$(SOURCES) | xargs $(CLANG_FORMAT) --dry-run -Werror

check-border: ## the tests of what is untrusted, under the address and undefined-behaviour sanitizers
	@$(call BUILD,asan) --target border; $(MODEL); $(call CTEST,asan,-L border)

check-asan: ## all tests under the address and undefined-behaviour sanitizers
	@$(call BUILD,asan); $(MODEL); $(call CTEST,asan,-LE package)

check-tsan: ## the tests of threaded kernels under the thread sanitizer
	@$(call BUILD,tsan); $(call CTEST,tsan,-L threads)

check-fuzz: ## the fuzz targets (FUZZ_TARGETS, or all) for FUZZ_SECONDS each
	@$(call BUILD,fuzz,$(CLANG)) --target fuzz; tools/fuzz.sh build/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)

check-fuzz-python: python ## the Python package's calls, for FUZZ_SECONDS
	@cmake --build build/release --target make_tiny_gguf; mkdir -p build/fuzz-python; \
	build/release/tests/package/make_tiny_gguf build/fuzz-python/tiny.gguf llama chatml; PYTHONPATH=build/release/python \
	tools/python-with.sh tools/atheris-requirements.txt tests/python/binding_fuzz.py build/fuzz-python/tiny.gguf build/fuzz-python \
	-max_total_time=$(FUZZ_SECONDS) -timeout=60 -max_len=200 -len_control=0 -print_final_stats=1

format: ## clang-format over all sources
	@$(SOURCES) | xargs $(CLANG_FORMAT) -i

tidy: ## clang-tidy over all sources
	@$(call CONFIGURE,tidy,$(PYTHON) -DWINNOW_JUMBO=OFF); git ls-files 'src/*.cc' 'python/src/*.cc' | xargs -P 2 -n 4 clang-tidy -p build/tidy --quiet
