"""`winnow tune`: the cheapest spec that keeps what was asked, from records that `winnow eval` could have made.

tune.py WINNOW MAKE_TINY_GGUF
"""

import json
import os
import shlex
import subprocess
import sys
import tempfile

WINNOW, TINY = sys.argv[1:3]


def run(*arguments, code=0):
    environment = {**os.environ, "TMPDIR": work}
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=300, env=environment)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


with tempfile.TemporaryDirectory() as work:
    model, prompts, out = f"{work}/tiny.gguf", f"{work}/prompts.jsonl", f"{work}/out"
    subprocess.run([TINY, model], check=True)
    with open(prompts, "w") as file:
        for i, key in enumerate(("question", "input", "prompt")):
            print(json.dumps({"id": f"p{i}", "text": f"words {i} to read again " * 5, key: "and then?"}), file=file)
    base = ["tune", "-m", model, "-f", prompts, "--raw", "--threads", "1", "--kv", "full,snapkv:window=4,streaming-llm", "--budget", "16,64,100000"]

    # A bound of 0 takes the fewest bytes; the curve goes up in bytes and has the means of the records.
    low = json.loads(run(*base, "--min-fidelity", "0", "--json", "-o", out).stdout)
    assert low["curve"] == sorted(low["curve"], key=lambda row: (row["bytes_held"], -row["agreement"])) and low["best"] == low["curve"][0]
    assert {row["budget"] for row in low["curve"]} == {"16", "64", None}, "a budget that holds every prompt says nothing"
    with open(f"{out}/records.jsonl") as file:
        records = [json.loads(line) for line in file]
    for row in low["curve"]:
        of = [r for r in records if all(r[k] == row[k] for k in ("spec", "budget", "kv_type")) and "skipped" not in r]
        assert row["prompts"] == len(of) == 3
        for name, values in (("agreement", [r["score"] for r in of]), ("kl", [r["values"]["kl"] for r in of]), ("bytes_held", [r["bytes_held"] for r in of])):
            assert abs(row[name] - sum(values) / 3) <= 1e-9 * max(1, abs(row[name])), (name, row)
    full = low["curve"][-1]
    assert full["spec"] == "full" and full["agreement"] == 1 and full["kl"] < 1e-9

    # The choice is the cheapest of those that reach the bound, the full cache aside.
    reached = sorted(row["agreement"] for row in low["curve"] if row["spec"] != "full")
    for bound in (reached[0], reached[len(reached) // 2], reached[-1]):
        again = json.loads(run(*base, "--min-fidelity", str(bound), "--json", "-o", out).stdout)
        assert again["curve"] == low["curve"], "nothing is measured again"
        assert again["best"] == next(row for row in low["curve"] if row["spec"] != "full" and row["agreement"] >= bound)
    with open(f"{out}/records.jsonl") as file:
        assert len(file.readlines()) == len(records)

    # The command line that is printed can be used.
    said = run(*base, "--min-fidelity", "0", "-o", out).stdout
    line = said.strip().splitlines()[-1].strip()
    assert said.count("<-") == 1 and line.startswith("winnow run -m ") and line == low["command"]
    with open(f"{work}/text.txt", "w") as file:
        file.write("some words " * 30)
    words = shlex.split(line.replace("TEXT", f"{work}/text.txt").replace("QUESTION", "what?"))[1:]
    run(*words, "-n", "2", "--threads", "1")

    # A prompt that a budget holds whole counts as the full cache.
    with open(prompts, "a") as file:
        print(json.dumps({"id": "short", "text": "a b", "question": "c?"}), file=file)
    mixed = json.loads(run(*base, "--min-fidelity", "0", "--json", "-o", out).stdout)["curve"]
    with open(f"{out}/records.jsonl") as file:
        records = [json.loads(line) for line in file]
    short = next(r for r in records if r["id"] == "short" and r["spec"] == "full")
    for row in mixed:
        own = [r for r in records if all(r[k] == row[k] for k in ("spec", "budget", "kv_type")) and "skipped" not in r]
        of = own if row["spec"] == "full" else [*own, short]
        assert row["prompts"] == len(of) == 4 and row["whole"] == 4 - len(own), row
        assert abs(row["bytes_held"] - sum(r["bytes_held"] for r in of) / 4) < 1, row

    # With another type the full cache is a candidate, and half the bytes.
    small = json.loads(run(*base[:-4], "--kv", "full", "--kv-type", "f16,q8_0", "--limit", "3", "--min-fidelity", "0", "--json").stdout)
    assert small["best"]["spec"] == "full" and small["best"]["kv_type"] == "q8_0" and small["best"]["bytes_held"] < full["bytes_held"]

    none = run("tune", "-m", model, "-f", prompts, "--raw", "--threads", "1", "--kv", "streaming-llm", "--budget", "16", "--min-fidelity", "1", "--protocol", "question-agnostic", code=1)
    assert "nothing keeps 100.0 %" in none.stderr and "streaming-llm --budget 16" in none.stderr and "streaming-llm" in none.stdout
    assert "no budget is smaller than any prompt" in run(*base[:-1], "100000", "--kv", "snapkv:window=4", code=1).stderr
    assert "No such file" in run("tune", "-m", model, "-f", f"{work}/nothing.jsonl", code=1).stderr
    run("tune", "-m", model, "-f", prompts, "--min-fidelity", "98", code=2)
    assert not [name for name in os.listdir(work) if name.startswith("winnow-tune-")], "temporary folders vanish"
