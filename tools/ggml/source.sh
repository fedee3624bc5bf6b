# SPDX-License-Identifier: Apache-2.0
# Source and compiler of ggml, libllama and llama.cpp's server. For scripts that have set `here` to the folder of tools/
# (get-deps.sh, bench/server/llama_server.sh).
readonly version=0.3.36
readonly sha256=832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
readonly cache=${XDG_CACHE_HOME:-$HOME/.cache}/winnow

say() { echo "$*" >&2; }

has_amx() { grep -qw amx_tile /proc/cpuinfo 2>/dev/null && grep -qw amx_int8 /proc/cpuinfo; }

# GCC 12 drops stores to the AMX tile configuration, so ggml built by it dies at its first tile.
miscompiles_amx() { "$1" --version | grep -q 'Free Software Foundation' && [ "$("$1" -dumpversion | cut -d. -f1)" -lt 13 ]; }

# Sets cc, cxx and flags. If GCC would miscompile AMX, uses clang 16 instead, or builds ggml without AMX.
choose_compiler() {
  flags=
  cc=${CC:-cc} cxx=${CXX:-c++}
  if [ "${wanted:-}" = portable ] || ! has_amx; then return 0; fi
  if miscompiles_amx "$cxx" && command -v clang++-16 >/dev/null; then cc=clang-16 cxx=clang++-16; fi
  if miscompiles_amx "$cxx"; then flags="-mno-amx-tile -mno-amx-int8 -mno-amx-bf16"; else flags="-mamx-tile -mamx-int8 -mamx-bf16"; fi
}

# True if choose_compiler() found no compiler that can build AMX.
needs_other_compiler() { [[ $flags = *-mno-amx* ]]; }

# A name for a build, so that builds for other kinds of machines or with other patches are not mistaken for it.
folder() {
  local isa compiler patches
  patches=$(cat "$here"/ggml/*.patch | sha256sum | cut -c1-8)
  isa=portable
  [ "${wanted:-}" = portable ] || isa=$(grep -m1 -E '^(flags|Features)' /proc/cpuinfo 2>/dev/null | cut -d: -f2 | tr ' ' '\n' | sort | sha256sum | cut -c1-12)
  compiler=$("$cxx" --version | head -n1 | sed 's/^g++/c++/' | tr -cs 'A-Za-z0-9.' '-' | cut -c1-40)
  echo "$cache/llama-$version-$patches-${compiler%-}-$(uname -m)-$isa"
}

fetch_source() {
  local to=$1 file=${WINNOW_SDIST:-}
  if [ -z "$file" ]; then
    say "fetching the source of ggml and libllama (75 MB)"
    file=$("$here/fetch-package.sh" "llama-cpp-python==$version" "$sha256" "$to")
  fi
  echo "$sha256  $file" | sha256sum --check --quiet >&2 || { say "$file is not the source package that was expected"; exit 1; }
  tar xzf "$file" -C "$to"
  for file in "$here"/ggml/*.patch; do
    patch --quiet --strip=1 --fuzz=0 -d "$to/llama_cpp_python-$version/vendor/llama.cpp" <"$file" >&2 ||
      { say "$file does not fit the source of ggml"; exit 1; }
  done
}

# Copies its input to FILE, and shows ninja's progress on a terminal.
watched() {
  if [ ! -t 2 ]; then cat >"$1"; return; fi
  tee "$1" | awk 'match($0, /^\[[0-9]+\/[0-9]+\]/) {
    split(substr($0, 2, RLENGTH - 2), n, "/"); printf "\r  %d of %d files", n[1], n[2]; fflush() } END { print "" }' >&2
}

