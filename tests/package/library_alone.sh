#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# library_alone.sh CMAKE BUILD SOURCE TINY LIBRARY [OPTION…]: configures the library without any optional part while the
# parts' dependencies are hidden; OPTIONs go to CMake. Then builds and runs the examples against an installation of BUILD
# whose library is LIBRARY, which was linked without these dependencies.
set -Eeuo pipefail
cmake=$1 build=$2 source=$3 tiny=$4 alone=$5
trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/package/examples.sh
. "$source/tests/package/examples.sh"

absent=()
for package in CLI11 GTest ICU MPI OpenSSL; do absent+=("-DCMAKE_DISABLE_FIND_PACKAGE_$package=ON"); done
for found in EDIT_INCLUDE EDIT_LIBRARY HIREDIS_INCLUDE HIREDIS_LIBRARY; do absent+=("-D$found=$found-NOTFOUND"); done
"$cmake" -S "$source" -B "$work/build" -G Ninja "${@:6}" "${absent[@]}" -DWINNOW_BUILD_CLI=OFF -DWINNOW_BUILD_EVAL=OFF -DWINNOW_BUILD_REDIS=OFF \
  >"$work/log" || { cat "$work/log"; exit 1; }
if ninja -C "$work/build" -t commands winnow_library | grep -oE '(edit|hiredis|icu[a-z]*)\.so'; then echo "the library would need these"; exit 1; fi
if grep -r --include=cmake_install.cmake '/bin" TYPE EXECUTABLE' "$work/build"; then echo "a command would be installed"; exit 1; fi

"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
library=$(find "$work/prefix" -name libwinnow.so -exec readlink -f {} +)
cp "$alone" "$library"
if ldd "$library" | grep -E 'lib(edit|icu|hiredis)'; then echo "the library needs these"; exit 1; fi

"$tiny" "$work/tiny.gguf"
run_examples "$cmake" "$source" "$work"
"$cmake" -S "$source/tests/package/no_redis" -B "$work/no_redis" "-DCMAKE_PREFIX_PATH=$work/prefix" >/dev/null
"$cmake" --build "$work/no_redis" >/dev/null
said=$("$work/no_redis/no_redis" "$work/documents" redis://localhost)
expected="opened $work/documents
documents cannot be stored on a Redis server: this winnow was built without hiredis"
[ "$said" = "$expected" ] || { echo "$said"; exit 1; }
