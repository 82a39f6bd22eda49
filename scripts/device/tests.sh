#!/bin/sh
# Builds strait with its CUDA kernels against the LibTorch of python3's torch, on a machine with a GPU, nvcc and what
# scripts/setup installs, and runs there the tests, the codecs against those of the CPU, and the demo. What is installed in
# a folder of its own is found through CMAKE_PREFIX_PATH, PKG_CONFIG_PATH, CPATH and LIBRARY_PATH.
#
#   scripts/device/tests.sh [FOLDER]   builds in FOLDER/build (build/device) and leaves tests.txt, codecs.json and demo/ there
#
# STRAIT_TESTS=OFF leaves the tests out, and with them what only they need.
set -eu
cd "$(dirname "$0")/../.."

folder=${1:-build/device}
tests=${STRAIT_TESTS:-ON}
mkdir -p "$folder"
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)

STRAIT_TORCH=$(command -v python3)
export STRAIT_TORCH
cmake --preset release -B "$folder/build" -DSTRAIT_CUDA=ON \
  -DSTRAIT_CUDA_ARCHITECTURES="$capability" -DSTRAIT_TESTS="$tests" -DSTRAIT_BENCH=OFF | grep -E 'LibTorch|CUDA kernels'
cmake --build "$folder/build" -j "$(nproc)"
status=0
if [ "$tests" = ON ]; then
  ctest --test-dir "$folder/build" -j "$(nproc)" --output-on-failure -E '^(lint|install)' > "$folder/tests.txt" 2>&1 || status=1
  tail -n 20 "$folder/tests.txt"
fi
strait=$folder/build/strait
"$strait" codec bench --device cuda --json > "$folder/codecs.json" || status=1
"$strait" sweep experiments/demo.toml --out "$folder/demo" || status=1
exit $status
