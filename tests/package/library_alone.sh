#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# library_alone.sh CMAKE SOURCE WORK TINY [OPTION…]: builds the library without any optional part while the parts'
# dependencies are hidden, installs it, and builds and runs the examples against it. WORK is emptied first. OPTIONs go
# to CMake.
set -Eeuo pipefail
cmake=$1 source=$2 work=$3 tiny=$4
trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
rm -rf "$work"
mkdir -p "$work"
# shellcheck source=tests/package/examples.sh
. "$source/tests/package/examples.sh"

absent=()
for package in CLI11 GTest ICU MPI OpenSSL; do absent+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done
for found in EDIT_INCLUDE EDIT_LIBRARY HIREDIS_INCLUDE HIREDIS_LIBRARY; do absent+=("-D$found=$found-NOTFOUND"); done
# Compiled fast, since nothing is measured here: without optimisation, and kernels for one kind of processor.
"$cmake" -S "$source" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=None "-DCMAKE_CXX_FLAGS=-O0 -DHWY_COMPILE_ONLY_STATIC" "${@:5}" "${absent[@]}" \
  -DWINNOW_BUILD_CLI=OFF -DWINNOW_BUILD_EVAL=OFF -DWINNOW_BUILD_REDIS=OFF "-DCMAKE_INSTALL_PREFIX=$work/prefix" >"$work/log" || { cat "$work/log"; exit 1; }
"$cmake" --build "$work/build" --target install >"$work/log" || { cat "$work/log"; exit 1; }

library=$(find "$work/prefix" -name libwinnow.so)
if ldd "$library" | grep -E 'lib(edit|icu|hiredis)'; then echo "the library needs these"; exit 1; fi
[ ! -e "$work/prefix/bin/winnow" ]

"$tiny" "$work/tiny.gguf"
run_examples "$cmake" "$source" "$work"
"$cmake" -S "$source/tests/package/no_redis" -B "$work/no_redis" "-DCMAKE_PREFIX_PATH=$work/prefix" >/dev/null
"$cmake" --build "$work/no_redis" >/dev/null
said=$("$work/no_redis/no_redis" "$work/documents" redis://localhost)
expected="opened $work/documents
documents cannot be stored on a Redis server: this winnow was built without hiredis"
[ "$said" = "$expected" ] || { echo "$said"; exit 1; }
