#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Packs what bench/gpu/run.sh needs on a bare machine with a GPU into one archive: programs, the libraries that such a
# machine lacks, and kvpress and transformers with the packages that they import.
#   carry.sh BUILD ARCHIVE PYTHON   BUILD: a build folder with -DWINNOW_CUDA=ON -DWINNOW_BENCH=ON, after
#                                   tools/get-deps.sh cuda; ARCHIVE: a .tar.xz to make; PYTHON: the version of that
#                                   machine's python3, such as 3.12
# The machine needs a processor like that of the build, CUDA's libraries of the same major version, PyTorch and NumPy.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
build=${1:?build folder} archive=${2:?archive to make} python=${3:?version of the python3 there}
readonly programs=(gpu/device_test gpu/kernel_times bench/winnow_random_model winnow
  tests/attention/device_prefill_test tests/attention/device_decode_test tests/network/device_parity_test
  tests/engine/device_session_test)
readonly packages=(kvpress transformers tokenizers huggingface-hub safetensors regex pyyaml requests urllib3 charset-normalizer
  certifi idna cachetools packaging tqdm httpx httpcore h11 anyio click typer-slim)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
readonly folder=$work/carried
mkdir "$folder"
for program in "${programs[@]}"; do cp "$build/$program" "$folder"; done
cp "$build/gpu/libwinnow_cuda.so" "$folder"

# All libraries but those of glibc, the driver and CUDA, each under the name by which it is loaded.
ggml=$(dirname "$(ldd "$build/winnow" | awk '/libggml\.so/ { print $3 }')")
[ -e "$ggml/libggml-cuda.so" ] || { echo "there is no libggml-cuda.so: run tools/get-deps.sh cuda" >&2; exit 1; }
cp "$ggml/libggml-cuda.so" "$folder"
for file in "$folder"/*; do ldd "$file" || true; done 2>/dev/null |
  awk '$2 == "=>" && $3 ~ /^\// && $1 !~ /^lib(c|m|dl|rt|pthread|cuda|cudart|cublas|cublasLt)\.so/ { print $3 }' | sort -u |
  while read -r library; do cp -nL "$library" "$folder/"; done
strip --strip-unneeded "$folder"/* 2>/dev/null || true

# Wheels of the pinned versions for that Python, unpacked so that no pip is needed there.
awk -v wanted=" ${packages[*]} " '/^[a-z]/ { split($1, name, "=="); takes = index(wanted, " " name[1] " ") } takes' \
  "$here/../../tools/peers-requirements.txt" >"$work/requirements.txt"
platforms=()
for platform in manylinux_2_28 manylinux_2_17 manylinux2014 manylinux1; do platforms+=(--platform "${platform}_$(uname -m)"); done
python3 -m pip download --quiet --disable-pip-version-check --no-deps --require-hashes --only-binary=:all: --implementation cp \
  --python-version "$python" "${platforms[@]}" -d "$work/wheels" -r "$work/requirements.txt"
for wheel in "$work/wheels"/*.whl; do python3 -m zipfile -e "$wheel" "$folder/peers"; done

tar -C "$folder" -c . | xz -T0 >"$archive"
du -h --apparent-size "$archive" | cut -f1
