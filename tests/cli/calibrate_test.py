# SPDX-License-Identifier: Apache-2.0
"""`winnow calibrate`, and methods that use its calibration."""

import json
import os
import pathlib
import random
import shutil
import signal
import subprocess

import pytest
from program import PATIENCE, WINNOW, check_refusal, make_tiny_gguf, wait_for


def winnow(*arguments):
    return subprocess.run([WINNOW, *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=PATIENCE)


def write_text(path, words):
    random.seed(words)
    path.write_text(" ".join(random.choice(["one", "two", "three", "four"]) for _ in range(words)))
    return path


@pytest.fixture(scope="module")
def folder(work):
    return pathlib.Path(work)


@pytest.fixture(scope="module")
def text(folder):
    return write_text(folder / "own.txt", 60)


@pytest.fixture(scope="module")
def calibration(model, text, folder):
    result = winnow("calibrate", model, text, "-o", folder / "model.cal", "--raw", "--threads", 1)
    assert result.returncode == 0 and not result.stdout, result
    assert f"{folder}/model.cal: " in result.stderr and "in 1 passage," in result.stderr, result.stderr
    assert "the text has only" in result.stderr, result.stderr
    return folder / "model.cal"


def run(model, text, *more):
    return winnow("run", "-m", model, "-f", text, "-p", "?", "--raw", "--threads", 1, "-n", 5, "--ignore-eos", "--json", *more)


@pytest.mark.parametrize("spec", ["kvzap", "kvzap:when=step", "ada(kvzap)", "chunk(kvzap)"])
def test_methods_go_by_it(model, text, calibration, spec):
    result = run(model, text, "--kv", spec, "--budget", 40, "--calibration", calibration)
    assert result.returncode == 0, result.stderr
    cache = json.loads(result.stdout)["cache"]
    assert cache["entries_per_head_mean"] == 40, cache


def test_a_saved_cache_that_goes_on_by_it_needs_it(model, text, calibration, folder):
    arguments = ["--kv", "kvzap:when=step", "--budget", 40, "--save-kv", folder / "own.kv"]
    assert run(model, text, *arguments, "--calibration", calibration).returncode == 0
    loaded = ["run", "-m", model, "--load-kv", folder / "own.kv", "-p", "?", "--threads", 1, "-n", 2]
    assert winnow(*loaded, "--calibration", calibration).returncode == 0
    check_refusal(winnow(*loaded), 2, "kvzap:when=step needs a calibration of the model", "--calibration")


def test_methods_that_need_one_say_so(model, text):
    check_refusal(run(model, text, "--kv", "kvzap", "--budget", 40), 2, "kvzap needs a calibration of the model", "winnow calibrate", "--calibration")


def test_whole_runs_that_need_one_do_not_begin(model, folder, tmp_path):
    custom = folder / "own.jsonl"
    custom.write_text(json.dumps({"text": "one two three four " * 20, "question": "?", "outputs": ["one"]}) + "\n")
    missing = "kvzap:when=step needs a calibration of the model"
    cache = ["-m", model, "--kv", "kvzap:when=step", "--budget", 40, "--threads", 1]
    measured = winnow("eval", custom, *cache, "-o", tmp_path / "records")
    assert measured.returncode == 2 and missing in measured.stderr.splitlines()[-1], measured
    check_refusal(winnow("serve", *cache), 2, missing, "--calibration")


def test_one_that_cannot_be_used_is_refused(model, text, calibration, folder):
    def refused(path, *parts, of=model):
        check_refusal(run(of, text, "--kv", "kvzap", "--budget", 40, "--calibration", path), 1, str(path), *parts)

    whole = calibration.read_bytes()
    damaged = folder / "damaged.cal"
    damaged.write_bytes(whole[: len(whole) // 2])
    refused(damaged, "truncated", str(len(whole)))
    damaged.write_bytes(whole[:8] + b"\7" + whole[9:])
    refused(damaged, "format version 7, but this winnow reads version 3")
    damaged.write_bytes(whole[:-20] + b"?" + whole[-19:])
    refused(damaged, "checksum")
    damaged.write_bytes(b"")
    refused(damaged, "is empty")
    refused(text, "is not a calibration")
    refused(folder / "absent.cal", "No such file")
    other = make_tiny_gguf(f"{folder}/other.gguf", "qwen2")
    refused(calibration, "not with", of=other)


def test_what_is_no_calibration_is_not_replaced(model, text, calibration, folder):
    def refused(code, *parts, path, text=text):
        check_refusal(winnow("calibrate", model, text, "-o", path, "--threads", 1), code, *parts)

    precious = folder / "precious.txt"
    precious.write_text("years of work")
    refused(1, str(precious), path=precious)
    assert precious.read_text() == "years of work"
    refused(1, "absent", path=folder / "absent/model.cal")
    refused(1, "absent.txt", path=calibration, text=folder / "absent.txt")
    refused(1, "too short to calibrate with: at least 64 are needed", path=calibration, text=write_text(folder / "short.txt", 3))
    check_refusal(winnow("calibrate", model, text, "-o", calibration, "--tokens", 10), 2, "with 10 tokens: at least 64 are needed")


def test_ctrl_c_leaves_what_was_there(model, folder, calibration):
    kept = folder / "kept.cal"
    shutil.copy(calibration, kept)
    before = kept.read_bytes()
    long = write_text(folder / "long.txt", 12000)
    process = subprocess.Popen([WINNOW, "calibrate", model, long, "-o", kept, "--raw", "--threads", "1"], stderr=subprocess.PIPE, text=True)
    wait_for(lambda: "tiny.gguf" in pathlib.Path(f"/proc/{process.pid}/maps").read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE) == 130, process.stderr.read()
    assert kept.read_bytes() == before
    assert not [name for name in os.listdir(folder) if name.endswith(".winnow-part")]
