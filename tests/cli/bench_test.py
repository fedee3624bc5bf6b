# SPDX-License-Identifier: Apache-2.0
"""`winnow bench`: the tests that it derives from its lists, the fields of its rows, and its refusals."""

import csv
import io
import json
import os
import re
import signal
import subprocess

import pytest
from program import WINNOW


def run(*arguments, code=0):
    result = subprocess.run([WINNOW, "bench", *arguments], capture_output=True, text=True, timeout=300)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


def rows_of(*arguments):
    return json.loads(run(*arguments, "-o", "json").stdout)


@pytest.fixture(scope="module")
def rows(model):
    """The rows for all combinations of several lists."""
    return rows_of("-m", model, "-p", "8,16", "-n", "4", "-d", "0,32", "--batch", "1,3", "--kv", "full,snapkv:window=4", "--budget", "8,16",
                   "--kv-type", "f16", "--kv-type", "f32", "--engine", "winnow,llama.cpp", "-r", "2", "--threads", "1")  # fmt: skip


def kinds_of(rows):
    return {(r["n_prompt"], r["n_gen"], r["n_depth"], r["batch"]) for r in rows}


def test_lists_are_crossed(rows):
    assert kinds_of(rows) == {(p, 0, d, 1) for p in (8, 16) for d in (0, 32)} | {(0, 4, d, b) for d in (0, 32) for b in (1, 3)}
    own = [(r["kv"], r["budget"], r["kv_type"]) for r in rows if r["engine"] == "winnow" and (r["n_prompt"], r["n_depth"]) == (8, 32)]
    assert own == [("full", None, "f16"), ("full", None, "f32")] + [("snapkv:window=4", b, t) for t in ("f16", "f32") for b in ("8", "16")]


def test_a_peer_has_each_test_once(rows):
    peers = [r for r in rows if r["engine"] == "llama.cpp"]
    assert len(peers) == len(kinds_of(rows)) and all((r["kv"], r["kv_type"], r["over_llama_cpp"]) == ("full", "f16", None) for r in peers)


def test_a_peer_decodes_many_short_sequences(model):
    """Together their cells are more than llama.cpp reads at once, but a single sequence has fewer."""
    (row,) = rows_of("-m", model, "-p", "0", "-n", "40", "--batch", "16", "--kv", "full", "--engine", "llama.cpp", "-r", "1", "--threads", "1")
    assert (row["batch"], row["n_gen"]) == (16, 40)


def test_figures_follow_from_the_samples(rows):
    for r in rows:
        assert len(r["samples_ts"]) == 2 and r["min_ts"] == min(r["samples_ts"]) and r["max_ts"] == max(r["samples_ts"])
        assert abs(r["avg_ts"] - sum(r["samples_ts"]) / 2) <= 1e-9 * r["avg_ts"] and abs(r["median_ts"] / r["avg_ts"] - 1) < 1
        assert r["kv_bytes"] > 0 and r["peak_bytes"] > 0 and r["roofline_share"] > 0 and r["threads"] == 1
        at_roofline = max(r["least_operations"] / max(r["roofline"][rate] for rate in ("f32_flops", "bf16_flops")),
                          r["least_bytes"] / r["roofline"]["read_bytes_per_second"])  # fmt: skip
        tokens = r["n_prompt"] + r["n_gen"] * r["batch"]
        assert abs(r["roofline_share"] - at_roofline / (tokens / r["median_ts"])) <= 1e-9 * r["roofline_share"]
        if r["engine"] != "winnow":
            continue
        (peer,) = [p for p in rows if p["engine"] != "winnow" and all(p[k] == r[k] for k in ("n_prompt", "n_gen", "n_depth", "batch"))]
        assert abs(r["over_llama_cpp"] - r["median_ts"] / peer["median_ts"]) <= 1e-9 * r["over_llama_cpp"]


def test_the_reading_of_a_depth_is_timed(rows):
    """It is as much work as reading a prompt of the same length: here, 32 tokens are four times 8, and attention."""
    (prompt,) = [r for r in rows if (r["n_prompt"], r["n_depth"], r["engine"]) == (8, 0, "llama.cpp")]
    for r in rows:
        reading = r["depth_reading"]
        if not r["n_depth"]:
            assert reading["seconds"] is None
            continue
        assert reading["seconds"] > 0 and reading["least_bytes"] == prompt["least_bytes"]
        assert 3 < reading["least_operations"] / prompt["least_operations"] < 16


def test_bytes_hold_what_stays(rows):
    """Of 32 tokens, 8 or 16 are kept; a token takes 16 key and 16 value elements in 2 heads of 2 layers."""
    at_depth = {(r["kv"], r["budget"], r["kv_type"]): r for r in rows if r["engine"] == "winnow" and (r["n_depth"], r["n_gen"], r["batch"]) == (32, 4, 3)}
    for (kv, budget, kv_type), row in at_depth.items():
        entries = (int(budget) if budget else 32) + 4
        assert row["kv_bytes"] >= 3 * entries * 2 * 2 * 2 * 16 * (2 if kv_type == "f16" else 4), row


def test_output_is_a_table_or_csv(model):
    small = ["-m", model, "-p", "8", "-n", "2", "-r", "1", "--threads", "1", "--engine", "winnow"]
    table = run(*small).stdout
    assert "| winnow | full | pp8 |" in table and "| winnow | full | tg2 |" in table and "GFLOP/s" in table
    lines = list(csv.DictReader(io.StringIO(run(*small, "-o", "csv").stdout)))
    assert [(l["engine"], l["n_prompt"], l["n_gen"], l["kv"]) for l in lines] == [("winnow", "8", "0", "full"), ("winnow", "0", "2", "full")]


def test_each_test_is_made_beside_others_too(model):
    """Each engine runs each test alone and beside others; `over_alone` is the ratio of the two medians."""
    command = ["-m", model, "-p", "8", "-n", "4", "--beside", "1,2", "--kv", "full,snapkv:window=4", "--budget", "8", "--engine", "winnow,llama.cpp",
               "-r", "1", "--threads", "1"]  # fmt: skip
    rows = rows_of(*command)
    sides = [("winnow", "full"), ("winnow", "snapkv:window=4"), ("llama.cpp", "full")]
    assert [(r["n_prompt"], r["engine"], r["kv"], r["beside"]) for r in rows] == [(p, *s, b) for p in (8, 0) for s in sides for b in (0, 1, 2)]
    for alone, *beside in (rows[i : i + 3] for i in range(0, len(rows), 3)):
        assert alone["over_alone"] is None
        assert all(abs(r["over_alone"] - r["median_ts"] / alone["median_ts"]) <= 1e-9 * r["over_alone"] for r in beside)
        for r in beside:  # compared with the peer beside as many others
            (peer,) = [p for p in rows if p["engine"] == "llama.cpp" and all(p[k] == r[k] for k in ("n_prompt", "n_gen", "beside"))]
            assert r["over_llama_cpp"] is None or abs(r["over_llama_cpp"] - r["median_ts"] / peer["median_ts"]) <= 1e-9 * r["over_llama_cpp"]
    small = ["-m", model, "-p", "0", "-n", "2", "-r", "1", "--threads", "1", "--engine", "winnow"]
    table = run(*small, "--beside", "1").stdout
    assert "| winnow | full | tg2 |" in table and "| winnow | full | tg2 beside 1 |" in table and "× alone" in table
    assert "× alone" not in run(*small).stdout


def test_refusals(model, work):
    assert "nothing to measure" in run("-m", model, "-p", "0", "-n", "0", code=2).stderr
    assert "llama.cpp-fa" in run("-m", model, "--engine", "llama", code=2).stderr
    assert "needs a budget" in run("-m", model, "--kv", "snapkv", code=2).stderr
    assert "-m MODEL" in run("-p", "8", code=2).stderr
    assert "--beside" in run("-m", model, "--beside", "0", code=2).stderr
    assert run("-m", model, "--kv", "full", "snapkv", code=2).stderr, "a list is one word"
    with open(f"{work}/short.txt", "w") as file:
        file.write("three short words")
    assert "the longest test needs 512" in run("-m", model, "-n", "0", "-f", f"{work}/short.txt", code=1).stderr


def test_ctrl_c_prints_what_is_done(model):
    """On Ctrl-C the finished tests are printed. Until then a terminal shows the remaining time."""
    terminal, stderr = os.openpty()
    process = subprocess.Popen([WINNOW, "bench", "-m", model, "-p", "8", "-n", "0", "-r", "1000000", "--engine", "winnow", "--threads", "1"],
                               stdout=subprocess.PIPE, stderr=stderr, text=True)  # fmt: skip
    os.close(stderr)
    progress = b""
    while b"repetition 3 " not in progress:
        progress += os.read(terminal, 4096)
    assert re.search(rb"repetition 2 of 1000000, ([0-9]+ h )?[0-9]+ (min|s) left\r", progress), progress
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130 and "| winnow | full | pp8 |" in out, (process.returncode, out)
