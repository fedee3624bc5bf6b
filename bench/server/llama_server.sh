#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of llama.cpp's server. If it is not in the user's cache, builds it from the source package that
# tools/get-deps.sh pins, with the same ggml and compiler as winnow's libllama.
set -euo pipefail
here=$(cd "$(dirname "$0")/../../tools" && pwd)
# shellcheck source=tools/ggml/source.sh
. "$here/ggml/source.sh"

ggml=$("$here/get-deps.sh")
choose_compiler
program=$(folder)-server/llama-server
if [ ! -x "$program" ]; then
  exec 9>"$cache/server-lock"
  flock 9
  [ -x "$program" ] && { echo "$program"; exit 0; }
  work=$(mktemp -d "$cache/server-build.XXXXXX")
  trap 'rm -rf "$work"' EXIT
  fetch_source "$work"
  say "building llama.cpp's server with $cxx (5 to 10 minutes, once)"
  {
    CC=$cc CXX=$cxx cmake -S "$work/llama_cpp_python-$version/vendor/llama.cpp" -B "$work/build" -G Ninja \
      -DCMAKE_BUILD_TYPE=Release "-DCMAKE_PREFIX_PATH=$ggml" -DLLAMA_USE_SYSTEM_GGML=ON -DBUILD_SHARED_LIBS=OFF \
      "-DCMAKE_C_FLAGS=$flags" "-DCMAKE_CXX_FLAGS=$flags" -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags \
      -DLLAMA_BUILD_COMMON=ON -DLLAMA_BUILD_TOOLS=ON -DLLAMA_BUILD_SERVER=ON \
      -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF \
      -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DGIT_EXE=OFF "-DLLAMA_BUILD_COMMIT=$version-winnow" &&
      cmake --build "$work/build" --target llama-server
  } 2>&1 | watched "$work/log" ||
    { tail -n 30 "$work/log" >&2; say "llama.cpp's server could not be built"; exit 1; }
  mkdir -p "${program%/*}"
  mv "$work/build/bin/llama-server" "$program"
fi
echo "$program"
