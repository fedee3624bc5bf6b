#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# fuzz.sh BUILD SECONDS [TARGET…]: runs fuzz targets of a build (by default all) for SECONDS each, one per processor at a
# time. The corpus stays in BUILD/corpus, findings in BUILD/findings.
set -euo pipefail
build=$(realpath "$1") && readonly build seconds=$2  # targets may change the folder
shift 2
if [ $# = 0 ]; then
  for program in "$build"/tests/fuzz/*_fuzz; do set -- "$@" "$(basename "$program" _fuzz)"; done
fi
mkdir -p "$build/findings"

run() {
  local target=$1 corpus=$build/corpus/$1
  mkdir -p "$corpus"
  "$build/tests/fuzz/${target}_seeds" "$corpus"
  "$build/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$target-" "$corpus" >"$build/$target.log" 2>&1 || echo "$target: $build/$target.log" >>"$build/failed"
  echo "$target: $(grep -E 'stat::number_of_executed_units|ERROR|SUMMARY' "$build/$target.log" | tr -s ' ' | tr '\n' ' ')"
}
export -f run
export build seconds

rm -f "$build/failed"
printf '%s\n' "$@" | xargs -P "$(nproc)" -I {} bash -euo pipefail -c 'run {}'
if [ -f "$build/failed" ]; then echo "findings are in $build/findings:"; cat "$build/failed"; exit 1; fi
