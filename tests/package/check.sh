#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh CMAKE BUILD SOURCE TINY: installs the build, moves the installation, builds the example projects against it in
# its new place, and runs them and the command. They may use only files of the package and of the system.
set -Eeuo pipefail
cmake=$1 build=$2 source=$3 tiny=$4
trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/package/examples.sh
. "$source/tests/package/examples.sh"

"$cmake" --install "$build" --prefix "$work/elsewhere" >/dev/null
mv "$work/elsewhere" "$work/prefix"
"$tiny" "$work/tiny.gguf"
run_examples "$cmake" "$source" "$work"
"$work/prefix/bin/winnow" --version | grep -q '^winnow '

library=$(find "$work/prefix" -name libwinnow.so -exec readlink -f {} +)
python3 "$source/tests/package/exports.py" "$library" "$work/prefix/include"
version=$("$work/prefix/bin/winnow" --version | sed -n 's/^winnow \([0-9]*\.[0-9]*\)\..*/\1/p')
readelf -d "$library" | grep -q "\[libwinnow.so.$version\]"

find "$work/prefix" -type f \( -path '*/bin/*' -o -name '*.so*' \) | while read -r file; do
  for path in $(readelf -d "$file" | sed -n 's/.*Library r.*path: \[\(.*\)\]/\1/p' | tr : ' '); do
    # shellcheck disable=SC2016
    [[ $path =~ ^('$ORIGIN'|/usr/) ]] || { echo "$file looks for libraries in $path"; exit 1; }
  done
  case $file in *cuda.so) continue ;; esac  # NVIDIA's libraries are the machine's
  ldd "$file" >"$work/ldd"
  if grep 'not found' "$work/ldd"; then echo "$file needs these"; exit 1; fi
  if grep '=> /' "$work/ldd" | grep -vE "=> (/usr/|/lib|$work/prefix/)"; then echo "$file uses these"; exit 1; fi
done
