#!/usr/bin/env bash
# check.sh CMAKE BUILD EXAMPLE TINY: installs the build, builds the example project against the installed package alone, and runs it and the command.
set -euo pipefail
cmake=$1 build=$2 example=$3 tiny=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$cmake" --install "$build" --prefix "$work/prefix" >/dev/null
"$cmake" -S "$example" -B "$work/ask" "-DCMAKE_PREFIX_PATH=$work/prefix" >/dev/null
"$cmake" --build "$work/ask" >/dev/null
"$tiny" "$work/tiny.gguf"
"$work/ask/ask" "$work/tiny.gguf" "$(printf 'word%.0s ' {1..60})" "and then" | tail -n 1 | grep -q '^64 entries per head'
"$work/prefix/bin/winnow" --version | grep -q '^winnow '
