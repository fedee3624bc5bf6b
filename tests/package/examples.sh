# SPDX-License-Identifier: Apache-2.0
# run_examples CMAKE SOURCE WORK: builds the projects in examples/ against the package in WORK/prefix, and runs them on WORK/tiny.gguf.
run_examples() {
  local cmake=$1 source=$2 work=$3 text said
  text=$(printf 'word%.0s ' {1..60})
  for project in ask my-method; do
    "$cmake" -S "$source/examples/$project" -B "$work/$project" "-DCMAKE_PREFIX_PATH=$work/prefix" >/dev/null
    "$cmake" --build "$work/$project" >/dev/null
  done
  "$work/ask/ask" "$work/tiny.gguf" "$text" "and then" | tail -n 1 | grep -q '^64 entries per head'
  for spec in value-norm:recent=4 'ada(attended-values:window=8)' attended-values:positions=cache; do
    said=$("$work/my-method/my-method" "$work/tiny.gguf" "$spec" 48 "$text" "and then")
    [[ $said == "$spec keeps 48 entries per head of "* ]] || { echo "my-method says: $said"; return 1; }
  done
  said=$("$work/my-method/my-method" "$work/tiny.gguf" value-nrom 48 "$text" "and then" 2>&1) && return 1
  [[ $said == *"did you mean value-norm"* ]] || { echo "my-method says: $said"; return 1; }
}
