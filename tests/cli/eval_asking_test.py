# SPDX-License-Identifier: Apache-2.0
"""`winnow eval` with ask methods over documents, beside caches of the joint prompt."""

import json
import os
import subprocess

import pytest
from program import WINNOW

ASKS = ["samkv", "recompute", "reuse", "epic:initial=8", "cacheblend"]
METHODS = ["--kv", ",".join(["full", "streaming-llm", "multi-infllm", *ASKS]), "--budget", "80,100"]
WORDS = "alpha beta gamma delta epsilon zeta".split()
LINE = {"documents": [" ".join(WORDS[i:] + WORDS[:i]) + "\n" for i in range(4)], "question": "Which?", "outputs": ["x"], "max_tokens": 8}


def run(work, out, *more, methods=METHODS, code=0):
    command = [WINNOW, "eval", "-m", f"{work}/tiny.gguf", "-o", f"{work}/{out}", "--raw", "--threads", "1", *methods, *more]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == code, (command, result.returncode, result.stderr)
    return result


def write(path, *lines):
    with open(path, "w") as file:
        for line in lines:
            print(json.dumps(line), file=file)


def records(work, out):
    with open(f"{work}/{out}/records.jsonl") as file:
        found = [json.loads(line) for line in file]
    for record in found:
        record.pop("timings")
        record.get("values", {}).pop("ttft_ms", None)
    return found


@pytest.fixture(scope="module")
def asked(work, model):
    """The records of two samples, by sample, spec and budget."""
    write(f"{work}/own.jsonl", {"text": "Read:\n", **LINE}, {**LINE, "question": "And which?"})
    run(work, "asked", f"{work}/own.jsonl")
    found = {(r["id"], r["spec"], r["budget"]): r for r in records(work, "asked")}
    assert len(found) == 2 * 10
    return found


def test_every_method_has_a_record(asked):
    for (sample, spec, budget), r in asked.items():
        full = asked[sample, "full", None]
        assert r["group_size"] == 10 and r["prompt_hash"] == full["prompt_hash"] and r["prompt_tokens"] == full["prompt_tokens"]
        assert budget in (("80", "100") if spec in ("streaming-llm", "multi-infllm") else (None,))
        assert ("sequence_ratio" in r.get("values", {})) == (spec not in ("full", "streaming-llm"))


def test_recompute_is_the_joint_prompt(asked):
    for sample in "12":
        full, recompute = asked[sample, "full", None], asked[sample, "recompute", None]
        assert full["answer"] == recompute["answer"] and full["bytes_held"] == recompute["bytes_held"]
        assert recompute["values"] == {"recompute_ratio": 1, "sequence_ratio": 1}
        assert 0 < asked[sample, "epic:initial=8", None]["values"]["recompute_ratio"] < 0.5
        assert asked[sample, "reuse", None]["values"]["recompute_ratio"] == 0


def test_a_run_goes_on_and_shards_add_up(work, asked):
    task = f"{work}/own.jsonl"
    assert "0 groups measured, 2 known before" in run(work, "asked", task).stderr
    run(work, "part", task, methods=["--kv", "samkv"])
    run(work, "part", task)
    for i in range(2):
        run(work, f"shard{i}", task, "--shard", f"{i}/2")
    for outs in (("part",), ("shard0", "shard1")):
        both = [r for out in outs for r in records(work, out)]
        assert {(r["id"], r["spec"], r["budget"]): r["answer"] for r in both} == {key: r["answer"] for key, r in asked.items()}


def test_reports_have_the_ratios(work, asked):
    table = subprocess.run([WINNOW, "eval", "report", f"{work}/asked"], capture_output=True, text=True, check=True).stdout
    assert "| `multi-infllm` @ 80 |" in table
    (samkv,) = (line for line in table.splitlines() if line.startswith("| `samkv` |") and "recomputed" in line)
    assert "; recomputed, %: " in samkv and "; entries kept, %: " in samkv and "; first token, ms: " in samkv
    page = f"{work}/page.html"
    subprocess.run([WINNOW, "eval", "report", f"{work}/asked", "-o", page], check=True, timeout=100)
    with open(page) as file:
        text = file.read()
    assert "recomputed, %" in text and "samkv" in text
    same = subprocess.run([WINNOW, "eval", "compare", f"{work}/asked", f"{work}/asked"], capture_output=True, text=True, check=True).stdout
    assert same.count("| +0.0 | 1.000 |") == 10, same


def test_the_distance_to_the_joint_prefill(work, model):
    os.makedirs(f"{work}/data/multi-doc")
    write(f"{work}/data/multi-doc/one.jsonl", {"documents": [d[:30] for d in LINE["documents"]], "question": "Which?", "answers": ["x"]})
    run(work, "near", "documents-fidelity/multi-doc/one", "--data", f"{work}/data", "--beyond-context")
    found = {r["spec"]: r for r in records(work, "near") if r["budget"] in (None, "80")}
    assert found["recompute"]["values"]["kl"] < 1e-9 and found["recompute"]["score"] == 1
    assert found["full"]["values"]["kl"] < 1e-9 < found["reuse"]["values"]["kl"]
    assert all(r["task"] == "documents-fidelity/multi-doc/one" for r in found.values())


def test_documents_are_cut_where_the_user_says_so(work, asked):
    long = {**LINE, "documents": [d * 4 for d in LINE["documents"]]}
    write(f"{work}/long.jsonl", long)
    said = run(work, "long", f"{work}/long.jsonl", code=1).stderr
    assert "more than the model's context of 256: cut the middle out of long prompts with --max-prompt N" in said, said
    run(work, "long", f"{work}/long.jsonl", "--max-prompt", "200")
    assert all(r["prompt_tokens"] <= 200 and r["max_prompt"] == 200 and r["cut_tokens"] > 100 for r in records(work, "long"))
    write(f"{work}/one_long.jsonl", {**LINE, "documents": ["x" * 300]})
    said = run(work, "one_long", f"{work}/one_long.jsonl", "--beyond-context", methods=["--kv", "reuse"], code=1).stderr
    assert "the document has 30" in said and "the model's context of 256" in said, said


@pytest.mark.parametrize(
    ("documents", "why"),
    [([], "there are no documents"), (["a", 7], "document 2 of 2 is not a string"), (["a", ""], "document 2 of 2 is empty"), ("a", "is not a list of strings")],
)  # fmt: skip
def test_documents_that_are_none(work, model, documents, why):
    write(f"{work}/bad.jsonl", {**LINE, "documents": documents}, LINE)
    said = run(work, f"bad{abs(hash(why))}", f"{work}/bad.jsonl", code=1).stderr
    assert f"bad.jsonl line 1: {why}" in said or f"bad.jsonl line 1: \"documents\" {why}" in said, said


def test_asks_that_cannot_be(work, model):
    write(f"{work}/plain.jsonl", LINE, {"text": "A text.", "question": "?", "outputs": ["x"], "id": "plain"})
    said = run(work, "x", f"{work}/plain.jsonl", methods=["--kv", "full,samkv"], code=2).stderr
    assert "samkv combines documents, but the sample plain of" in said and "has none" in said, said
    own = f"{work}/plain.jsonl"
    assert "multi-infllm needs a budget" in run(work, "x", own, methods=["--kv", "multi-infllm"], code=2).stderr
    assert "did you mean samkv?" in run(work, "x", own, methods=["--kv", "samkw"], code=2).stderr
    for command in (["tune", "-f", own], ["bench"]):
        result = subprocess.run([WINNOW, *command, "-m", f"{work}/tiny.gguf", "--kv", "samkv"], capture_output=True, text=True, timeout=100)
        assert result.returncode == 2 and "samkv combines documents: use it in winnow eval or winnow docs ask" in result.stderr
