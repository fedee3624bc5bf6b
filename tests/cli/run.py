"""What `winnow run`, `methods` and `inspect` print, on a small random model.

run.py WINNOW MAKE_TINY_GGUF
"""

import json
import os
import subprocess
import sys
import tempfile

WINNOW, TINY = sys.argv[1:3]


def run(*arguments, code=0, **process):
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=120, **process)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/tiny.gguf"
    subprocess.run([TINY, model], check=True)
    text = f"{folder}/text.txt"
    with open(text, "w") as file:
        file.write("some words to read " * 8)
    base = ["run", "-m", model, "-f", text, "--raw", "-n", "6", "--ignore-eos"]
    snapkv = ["--kv", "snapkv:window=8", "--budget", "40"]

    one = json.loads(run(*base, *snapkv, "-p", "and?", "--json", "--logprobs", "3", "--dump-kept", f"{folder}/kept.json").stdout)
    for key in ["model", "spec", "spec_full", "budget", "kv_type", "protocol", "answer", "finish_reason", "tokens", "cache", "cache_end", "timings", "logprobs", "system"]:
        assert key in one, key
    for key in ["entries_per_head_mean", "entries_min", "entries_max", "attended_per_head_mean", "bytes_held", "bytes_full", "peak_bytes", "rss_peak_bytes"]:
        assert key in one["cache"] and key in one["cache_end"], key
    for key in ["load_ms", "prefill_ms", "prefill_tokens_per_second", "time_to_first_token_ms", "decode_ms", "decode_tokens_per_second"]:
        assert key in one["timings"], key
    assert one["spec"] == "snapkv:window=8" and one["budget"] == "40" and one["finish_reason"] == "length"
    assert one["tokens"]["generated"] == 6 and len(one["logprobs"]) == 6 and len(one["logprobs"][0]["top"]) == 3
    assert one["cache"]["entries_min"] == one["cache"]["entries_max"] == 40
    n = one["tokens"]["prompt"]
    assert one["cache"]["bytes_full"] == n * 2 * 2 * 64 * 4, "layers * KV heads * dimensions * (key and value in f16)"

    core = {min(os.sched_getaffinity(0))}
    on_one_core = run(*base, "--json", preexec_fn=lambda: os.sched_setaffinity(0, core))
    assert json.loads(on_one_core.stdout)["system"]["threads"] == 1, "no more threads than cores that may be used"
    assert "share" not in on_one_core.stderr
    assert "3 threads share 1 core" in run(*base, "--dry-run", "--threads", "3", preexec_fn=lambda: os.sched_setaffinity(0, core)).stderr

    kept = json.load(open(f"{folder}/kept.json"))
    assert kept["n_prompt"] == n and len(kept["layers"]) == 2 and len(kept["layers"][0]) == 2
    for head in (head for layer in kept["layers"] for head in layer):
        assert head == sorted(head) and len(head) == 40 and head[-8:] == list(range(n - 8, n))

    streamed = run(*base, *snapkv, "-p", "and?")
    assert "snapkv:window=8 @ 40" in streamed.stderr
    assert run(*base, *snapkv, "-p", "and?", "-q").stderr == ""
    assert run(*base, *snapkv, "-p", "and?").stdout == streamed.stdout, "greedy answers repeat"
    sampled = [run(*base, "-p", "and?", "--temp", "1", "--seed", seed).stdout for seed in ("1", "1", "2")]
    assert sampled[0] == sampled[1] != sampled[2]

    for protocol in ("question-aware", "question-agnostic"):
        several = json.loads(run(*base, *snapkv, "--protocol", protocol, "--json", "-p", "and?", "-p", "or not?").stdout)
        alone = [json.loads(run(*base, *snapkv, "--protocol", protocol, "--json", "-p", q).stdout) for q in ("and?", "or not?")]
        assert [a["answer"] for a in several["answers"]] == [a["answer"] for a in alone], protocol

    with open(f"{folder}/in.jsonl", "w") as file:
        for i in range(20):
            file.write(json.dumps({"id": f"q{i}", "text": "some words " * (i + 5), "question": "and?"}) + "\n")
        file.write("no json\n")
        file.write(json.dumps({"text": 3}) + "\n")
    jsonl = ["run", "-m", model, "--raw", "-n", "4", "--ignore-eos", *snapkv, "--jsonl", f"{folder}/in.jsonl", "-o", f"{folder}/out.jsonl"]
    failed = run(*jsonl, code=1)
    assert "in.jsonl line 21" in failed.stderr and "in.jsonl line 22" in failed.stderr
    whole = open(f"{folder}/out.jsonl").read()
    records = [json.loads(line) for line in whole.splitlines()]
    assert [r["id"] for r in records] == [f"q{i}" for i in range(20)]
    with open(f"{folder}/out.jsonl", "w") as file:
        file.write("".join(line + "\n" for line in whole.splitlines()[:16]) + whole.splitlines()[16][:20])
    run(*jsonl, code=1)
    again = {json.loads(line)["id"]: json.loads(line)["answer"] for line in open(f"{folder}/out.jsonl")}
    assert again == {r["id"]: r["answer"] for r in records}, "a run that was cut goes on where it stopped"

    assert "prompt tokens" in run(*base, *snapkv, "-p", "x", "--dry-run").stdout
    names = [m["name"] for m in json.loads(run("methods", "--json").stdout)]
    assert {"full", "streaming-llm", "snapkv"} <= set(names)
    assert "window" in run("methods", "snapkv").stdout
    assert json.loads(run("inspect", model, "--json").stdout)["kv_bytes_per_token"] == 2 * 2 * 64 * 4
    assert run("--version").stdout.startswith("winnow ")
    for command in ("run", "methods", "inspect"):
        assert "Example" in run(command, "--help").stdout, command
    assert "run" in run("--help").stdout
print("all as expected")
