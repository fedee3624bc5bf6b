#!/usr/bin/env bash
# fuzz.sh BUILD SECONDS: runs each fuzz target of a build for that long, all at once. What was learnt stays in BUILD/corpus, findings in BUILD/findings.
set -euo pipefail
readonly build=$1 seconds=$2
mkdir -p "$build"/corpus/{document,gguf,saved,spec} "$build/findings"

"$build/tests/fuzz/document_seeds" "$build/corpus/document"
"$build/tests/fuzz/gguf_seeds" "$build/corpus/gguf"
"$build/tests/fuzz/saved_seeds" "$build/corpus/saved"
for spec in full 'streaming-llm:sinks=8,positions=cache' 'snapkv:window=16,kernel=7,pool=max,gqa=mean' 'full,snapkv:window=2,full' 'pyramid(ada(h2o:heavy=2,recent=1):floor=0.2):beta=4' 'chunk(tova):length=10,per=head' 10% 64MiB q8_0/f16; do
  printf %s "$spec" >"$build/corpus/spec/$(printf %s "$spec" | sha1sum | cut -c1-40)"
done

pids=()
for target in document gguf saved spec; do
  "$build/tests/fuzz/${target}_fuzz" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/findings/$target-" "$build/corpus/$target" >"$build/$target.log" 2>&1 &
  pids+=($!)
done
status=0
for i in 0 1 2 3; do wait "${pids[$i]}" || status=1; done
tail -n 12 "$build"/{document,gguf,saved,spec}.log
[ $status = 0 ] || { echo "findings are in $build/findings"; exit 1; }
