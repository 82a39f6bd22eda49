#!/bin/sh
# Compares the CUDA kernels with their arithmetic on the host and times them, on a machine with a GPU and nvcc; then runs
# compute-sanitizer over them where it is installed. Needs neither CMake nor LibTorch.
#
#   scripts/device/kernels.sh [FOLDER]   builds in FOLDER (build/device) and leaves kernels.txt there
set -eu
cd "$(dirname "$0")/../.."

folder=${1:-build/device}
mkdir -p "$folder"
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
"$nvcc" --options-file strait/kernels/cuda/nvcc_options -Werror all-warnings -Xcompiler=-Werror -arch=native --threads 0 -I. \
  strait/kernels/cuda/*.cu tests/cuda/*.cpp bench/cuda/*.cpp -o "$folder/cuda_kernels"
"$folder/cuda_kernels" --verify
if sanitizer=$(command -v compute-sanitizer); then
  for tool in memcheck racecheck synccheck; do
    echo "compute-sanitizer $tool"
    "$sanitizer" --tool "$tool" --error-exitcode 1 "$folder/cuda_kernels" --verify
  done
else
  echo "compute-sanitizer is not installed: memory and races were not checked"
fi
"$folder/cuda_kernels" > "$folder/kernels.txt" || { cat "$folder/kernels.txt"; exit 1; }
cat "$folder/kernels.txt"
