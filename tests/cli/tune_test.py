# SPDX-License-Identifier: Apache-2.0
"""`winnow tune`: the cheapest spec that meets the demanded fidelity, from records like those of `winnow eval`."""

import json
import os
import shlex
import subprocess

import pytest
from program import WINNOW

METHODS = ["--kv", "full,snapkv:window=4,streaming-llm", "--budget", "16,64,100000"]


def run(work, *arguments, code=0):
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=300, env={**os.environ, "TMPDIR": work})
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


def write_prompts(path, *more):
    with open(path, "w") as file:
        for i, key in enumerate(("question", "input", "prompt")):
            print(json.dumps({"id": f"p{i}", "text": f"words {i} to read again " * 5, key: "and then?"}), file=file)
        for one in more:
            print(json.dumps(one), file=file)
    return path


@pytest.fixture(scope="module")
def base(work, model):
    return ["tune", "-m", model, "-f", write_prompts(f"{work}/prompts.jsonl"), "--raw", "--threads", "1", *METHODS]


@pytest.fixture(scope="module")
def low(work, base):
    """The result for a bound of 0, with records in the folder `out`."""
    return json.loads(run(work, *base, "--min-fidelity", "0", "--json", "-o", f"{work}/out").stdout)


def records(work, out="out"):
    with open(f"{work}/{out}/records.jsonl") as file:
        return [json.loads(line) for line in file]


def of(row, found):
    return [r for r in found if all(r[k] == row[k] for k in ("spec", "budget", "kv_type")) and "skipped" not in r]


def test_a_bound_of_0_takes_the_fewest_bytes(low):
    assert low["curve"] == sorted(low["curve"], key=lambda row: (row["bytes_held"], -row["agreement"])) and low["best"] == low["curve"][0]
    assert {row["budget"] for row in low["curve"]} == {"16", "64", None}, "a budget that holds every prompt says nothing"
    full = low["curve"][-1]
    assert full["spec"] == "full" and full["agreement"] == 1 and full["kl"] < 1e-9


def test_the_curve_has_the_means_of_the_records(work, low):
    for row in low["curve"]:
        found = of(row, records(work))
        assert row["prompts"] == len(found) == 3
        for name, values in (("agreement", [r["score"] for r in found]), ("kl", [r["values"]["kl"] for r in found]), ("bytes_held", [r["bytes_held"] for r in found])):
            assert abs(row[name] - sum(values) / 3) <= 1e-9 * max(1, abs(row[name])), (name, row)


def test_the_choice_is_the_cheapest_that_reaches_the_bound(work, base, low):
    before = len(records(work))
    reached = sorted(row["agreement"] for row in low["curve"] if row["spec"] != "full")
    for bound in (reached[0], reached[len(reached) // 2], reached[-1]):
        again = json.loads(run(work, *base, "--min-fidelity", str(bound), "--json", "-o", f"{work}/out").stdout)
        assert again["curve"] == low["curve"], "nothing is measured again"
        assert again["best"] == next(row for row in low["curve"] if row["spec"] != "full" and row["agreement"] >= bound)
    assert len(records(work)) == before


def test_the_command_line_that_is_printed_can_be_used(work, base, low):
    said = run(work, *base, "--min-fidelity", "0", "-o", f"{work}/out").stdout
    line = said.strip().splitlines()[-1].strip()
    assert said.count("<-") == 1 and line.startswith("winnow run -m ") and line == low["command"]
    with open(f"{work}/text.txt", "w") as file:
        file.write("some words " * 30)
    words = shlex.split(line.replace("TEXT", f"{work}/text.txt").replace("QUESTION", "what?"))[1:]
    run(work, *words, "-n", "2", "--threads", "1")


def test_a_prompt_that_a_budget_holds_whole_counts_as_the_full_cache(work, model):
    prompts = write_prompts(f"{work}/mixed.jsonl", {"id": "short", "text": "a b", "question": "c?"})
    command = ["tune", "-m", model, "-f", prompts, "--raw", "--threads", "1", *METHODS, "--min-fidelity", "0", "--json", "-o", f"{work}/mixed"]
    curve = json.loads(run(work, *command).stdout)["curve"]
    found = records(work, "mixed")
    short = next(r for r in found if r["id"] == "short" and r["spec"] == "full")
    for row in curve:
        own = of(row, found)
        counted = own if row["spec"] == "full" else [*own, short]
        assert row["prompts"] == len(counted) == 4 and row["whole"] == 4 - len(own), row
        assert abs(row["bytes_held"] - sum(r["bytes_held"] for r in counted) / 4) < 1, row


def test_with_another_type_the_full_cache_is_a_candidate(work, base, low):
    small = json.loads(run(work, *base[: -len(METHODS)], "--kv", "full", "--kv-type", "f16,q8_0", "--min-fidelity", "0", "--json").stdout)
    assert small["best"]["spec"] == "full" and small["best"]["kv_type"] == "q8_0" and small["best"]["bytes_held"] < low["curve"][-1]["bytes_held"]
    assert not [name for name in os.listdir(work) if name.startswith("winnow-tune-")], "temporary folders vanish"


def test_lines_that_are_no_prompts_are_counted(work, base, model):
    with open(f"{work}/text.txt", "w") as file:
        file.write("a line of a text\n" * 162)
    errors = run(work, "tune", "-m", model, "-f", f"{work}/text.txt", "-o", f"{work}/of-text", code=1).stderr
    assert errors.count("text.txt line ") == 5 and "none of its 162 lines" in errors, errors
    assert not os.path.exists(f"{work}/of-text")
    prompts = write_prompts(f"{work}/bad.jsonl", *[[]] * 7)
    errors = run(work, "tune", "-m", model, "-f", prompts, "--raw", "--threads", "1", *METHODS, "--min-fidelity", "0").stderr
    assert errors.count("bad.jsonl line ") == 5 and f"7 lines of {prompts} are not prompts, and not counted (the first 5 are named above)" in errors, errors


def test_refusals(work, base, model):
    one = [*base[: -len(METHODS)], "--kv", "streaming-llm", "--budget", "16", "--min-fidelity", "1", "--protocol", "question-agnostic"]
    none = run(work, *one, code=1)
    assert "no method and budget keeps 100.0 %" in none.stderr and "streaming-llm --budget 16" in none.stderr and "streaming-llm" in none.stdout
    assert "every budget is at least as large as every prompt" in run(work, *base[:-1], "100000", "--kv", "snapkv:window=4", code=1).stderr
    assert "No such file" in run(work, "tune", "-m", model, "-f", f"{work}/nothing.jsonl", code=1).stderr
    run(work, *base[: -len(METHODS)], "--min-fidelity", "98", code=2)
