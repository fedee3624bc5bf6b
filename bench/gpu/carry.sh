#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Collects what bench/gpu/run.sh runs on a bare machine with a GPU: programs, and the libraries that such a machine lacks.
#   carry.sh BUILD FOLDER   BUILD: a build folder with -DWINNOW_CUDA=ON -DWINNOW_BENCH=ON, after tools/get-deps.sh cuda
# The machine needs a processor like that of the build.
set -euo pipefail
build=${1:?build folder} folder=${2:?folder to make}
readonly programs=(gpu/device_test gpu/kernel_times bench/winnow_random_model winnow
  tests/attention/device_prefill_test tests/attention/device_decode_test tests/network/device_parity_test
  tests/engine/device_session_test)

mkdir -p "$folder"
for program in "${programs[@]}"; do cp "$build/$program" "$folder"; done
cp "$build/gpu/libwinnow_cuda.so" "$folder"

# All libraries but those of glibc and the driver, each under the name by which it is loaded.
cuda=$(dirname "$(ldd "$build/winnow" | awk '/libggml\.so/ { print $3 }')")/libggml-cuda.so
[ -e "$cuda" ] || { echo "there is no libggml-cuda.so: run tools/get-deps.sh cuda" >&2; exit 1; }
cp "$cuda" "$folder"
for file in "$folder"/*; do ldd "$file" || true; done 2>/dev/null |
  awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^lib(c|m|dl|rt|pthread|cuda)\.so/ { print $3 }' | sort -u |
  while read -r library; do cp -nL "$library" "$folder/"; done
strip --strip-unneeded "$folder"/* 2>/dev/null || true
du -sh "$folder" | cut -f1
