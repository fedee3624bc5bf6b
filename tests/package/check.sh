#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# check.sh CMAKE BUILD SOURCE TINY: installs the build, builds the example projects against the installed package alone, and runs them and the
# command.
set -Eeuo pipefail
cmake=$1 build=$2 source=$3 tiny=$4
trap 'echo "line $LINENO: $BASH_COMMAND"' ERR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# shellcheck source=tests/package/examples.sh
. "$source/tests/package/examples.sh"

"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
"$tiny" "$work/tiny.gguf"
run_examples "$cmake" "$source" "$work"
"$work/prefix/bin/winnow" --version | grep -q '^winnow '

library=$(find "$work/prefix" -name libwinnow.so -exec readlink -f {} +)
python3 "$source/tests/package/exports.py" "$library" "$work/prefix/include"
version=$("$work/prefix/bin/winnow" --version | sed -n 's/^winnow \([0-9]*\.[0-9]*\)\..*/\1/p')
readelf -d "$library" | grep -q "\[libwinnow.so.$version\]"
