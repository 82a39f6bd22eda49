#!/bin/sh
# Builds strait with its CUDA kernels against the LibTorch of python3's torch, on a machine with a GPU, nvcc and what
# scripts/setup installs, and runs there the tests, training (training.py) and the codecs. What is installed in a folder of
# its own is found through CMAKE_PREFIX_PATH, PKG_CONFIG_PATH, CPATH and LIBRARY_PATH.
#
#   scripts/device/tests.sh [FOLDER [CMAKE OPTION...]]   builds in FOLDER/build (build/device) and leaves build.txt, tests.txt,
#                                                        training.txt and codecs.txt in FOLDER
#
# STRAIT_WITHOUT is a regular expression of tests to leave out.
set -eu
cd "$(dirname "$0")/../.."

for program in nvidia-smi python3 cmake ctest; do
  command -v "$program" >/dev/null || { echo "tests.sh: there is no $program in PATH" >&2; exit 1; }
done
folder=${1:-build/device}
[ $# -eq 0 ] || shift
mkdir -p "$folder"
capability=$(nvidia-smi --query-gpu=compute_cap --format=csv,noheader | head -1 | tr -d .)
python=$(command -v python3)
# The Python package is built where the interpreter has its headers.
headers=$("$python" -c 'import os, sysconfig; print("ON" if os.path.exists(sysconfig.get_paths()["include"] + "/Python.h") else "OFF")')

status=0
STRAIT_TORCH=$python cmake --preset release -B "$folder/build" -DSTRAIT_CUDA=ON -DSTRAIT_CUDA_ARCHITECTURES="$capability" \
  -DSTRAIT_TESTS=ON -DSTRAIT_BENCH=OFF -DSTRAIT_PYTHON="$headers" "$@" > "$folder/build.txt" 2>&1 || status=1
grep -E 'LibTorch|CUDA kernels|CMake Error' -A 3 "$folder/build.txt" || true
[ $status = 0 ] || { echo "tests.sh: CMake failed, see $folder/build.txt" >&2; exit 1; }
cmake --build "$folder/build" -j "$(nproc)" -- -k 0 >> "$folder/build.txt" 2>&1 || status=1
grep -E 'error|FAILED' -A 5 "$folder/build.txt" | head -n 60 || true
[ -x "$folder/build/strait" ] || { echo "tests.sh: the program was not built, see $folder/build.txt" >&2; exit 1; }

OMP_NUM_THREADS=2 ctest --test-dir "$folder/build" -j "$(($(nproc) / 2))" --timeout 120 --output-on-failure -E "${STRAIT_WITHOUT:-^(lint|install)}" \
  > "$folder/tests.txt" 2>&1 || status=1
grep -E '^ *[0-9]+ - |tests passed|\[  FAILED  \]' "$folder/tests.txt" | sort | uniq | tail -n 40
"$python" scripts/device/training.py "$folder/build/strait" "$folder/training" > "$folder/training.txt" 2>&1 || status=1
cat "$folder/training.txt"
# Each by itself: the bench ends where a codec writes other bytes than on the CPU.
for codec in none fp16 bf16 quant:4 quant:8 quant:2,scope=block:64 quant:4,scope=block:64 quant:4,rounding=stochastic \
  quant:4,levels=symmetric quant:4,scope=block:64,spikes=1 fp8:e4m3 mx:e4m3 natural topk:0.1,index=bitmap topk:0.1 \
  random:0.1 columns:0.1; do
  "$folder/build/strait" codec bench --device cuda --shape 512x64x32x32 --codec "$codec" || status=1
done > "$folder/codecs.txt" 2>&1
cat "$folder/codecs.txt"
exit $status
