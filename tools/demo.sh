#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Asks one question about a long text three times: with the full cache, and with two methods at the same small budget. WINNOW is the command, WINNOW_MODEL the model.
set -euo pipefail
cd "$(dirname "$0")/.."

readonly text=examples/demo/war-and-peace.txt
readonly question='What did the young Princess Bolkonskaya bring her work in?'
readonly budget=${BUDGET:-512}

echo "$text, $(wc -w <"$text") words. $question"
for kv in full streaming-llm snapkv; do
  set -- --kv "$kv"
  [ "$kv" = full ] || set -- "$@" --budget "$budget"
  "$WINNOW" run -f "$text" -p "$question" -n 24 --json "$@" |
    KV=$* python3 -c '
import json, os, sys
r = json.load(sys.stdin)
cache, times = r["cache"], r["timings"]
row = (os.environ["KV"].replace("--kv ", "").replace("--budget", "@"), "%.1f MiB" % (cache["bytes_held"] / 2**20),
       "%.0f" % times["prefill_tokens_per_second"], "%.0f" % times["decode_tokens_per_second"], " ".join(r["answer"].split()))
if row[0] == "full":
    print("{:<22}{:>10}{:>13}{:>12}   {}".format("method", "KV cache", "prefill t/s", "decode t/s", "answer"))
print("{:<22}{:>10}{:>13}{:>12}   {}".format(*row))'
done
