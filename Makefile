# The few commands of the project; CMake does the work. `make help` lists them.

SECONDS_PER_FUZZER ?= 60

help:
	@echo "make setup           install what is needed from Debian's packages"
	@echo "make program         build the program alone, build/strait"
	@echo "make demo            build the program, train the variants of experiments/demo.toml into runs/demo, print a table"
	@echo "make build           build everything into build/"
	@echo "make test            all tests, and the light ones again with ASan and UBSan"
	@echo "make test-sanitized  all tests with ASan and UBSan, and those of threads with ThreadSanitizer"
	@echo "make bench           run the benchmarks"
	@echo "make docs            the API reference and the pages of docs/, into build/docs/index.html"
	@echo "make format          clang-format every source file in place"
	@echo "make lint            the checks of tests/lint"
	@echo "make fuzz            every fuzz target for $(SECONDS_PER_FUZZER) s (SECONDS_PER_FUZZER=n changes that)"
	@echo "make clean           remove the build folders"

setup:
	@scripts/setup

program:
	@scripts/setup program
	@scripts/configure program
	cmake --build build --target strait

build: setup
	@scripts/configure
	cmake --build build

demo: program
	build/strait sweep experiments/demo.toml --out runs/demo

# The sanitizers go first, so that the summary of all tests is what a reader sees last.
test: build
	@tests/lint/run_sanitized light
	ctest --test-dir build --output-on-failure --no-label-summary -j2

test-sanitized: setup
	@tests/lint/run_sanitized all
	@tests/lint/run_sanitized threads

bench: build
	build/strait codec bench
	@for program in build/bench_*; do \
	  if [ -x "$$program" ] && [ -f "$$program" ]; then "$$program" || exit 1; fi; \
	done

format: setup
	git ls-files -z '*.h' '*.cpp' '*.cu' '*.cuh' | xargs -0 clang-format -i

lint: build
	ctest --test-dir build --output-on-failure -R '^lint_'

docs: setup
	@mkdir -p build/docs
	doxygen docs/doxygen/Doxyfile
	@echo "docs: build/docs/index.html"

fuzz: setup
	fuzz/run $(SECONDS_PER_FUZZER)

clean:
	rm -rf build build-dev build-debian build-wheel build-debug build-asan build-tsan build-fuzz build-tidy

.PHONY: help setup program build demo test test-sanitized bench format lint docs fuzz clean
