# SPDX-License-Identifier: Apache-2.0
"""`winnow inspect` on models that run and on other files: the description is on stdout; the reason why a file does not
run is on stderr, with exit code 1."""

import json
import os
import subprocess

import pytest
from program import PATIENCE, WINNOW, check_refusal, lines_of, make_tiny_gguf


def inspect(*arguments):
    return subprocess.run([WINNOW, "inspect", *arguments], capture_output=True, text=True, timeout=PATIENCE)


@pytest.fixture
def unknown(tmp_path):
    return make_tiny_gguf(str(tmp_path / "unknown.gguf"), "deepseek2")


def test_a_model_that_runs(model):
    shown = inspect(model, "--json")
    facts = json.loads(shown.stdout)
    assert shown.returncode == 0 and not shown.stderr, shown
    assert facts["runs"] and "refusal" not in facts and facts["parts"] == 1 and facts["n_layer"] == 2
    assert "does not run" not in inspect(model).stdout


def test_an_architecture_that_winnow_does_not_know(unknown):
    shown = inspect(unknown)
    assert shown.returncode == 1
    for fact in ("deepseek2 (tiny)", "weights: f32 100 %", "2 layers", "4 query heads on 2 KV heads of 64", "288 tokens", "256", "does not run"):
        assert fact in shown.stdout, (fact, shown.stdout)
    (line,) = lines_of(shown.stderr)
    assert "architecture 'deepseek2' is not supported" in line and "llama, qwen2" in line and "ernie4_5" in line
    facts = json.loads(inspect(unknown, "--json").stdout)
    assert facts["runs"] is False and facts["refusal"] in shown.stderr
    assert (facts["arch"], facts["weight_type"], facts["n_layer"], facts["context"]) == ("deepseek2", "f32", 2, 256)


def test_a_projector(tmp_path):
    shown = inspect(make_tiny_gguf(str(tmp_path / "mmproj.gguf"), "clip"))
    assert shown.returncode == 1 and "clip" in shown.stdout and "projector for images or sound" in shown.stderr, shown


def test_a_download_that_stopped(model, tmp_path):
    cut = tmp_path / "cut.gguf"
    with open(model, "rb") as file:
        cut.write_bytes(file.read(os.path.getsize(model) // 2))
    shown = inspect(str(cut))
    assert shown.returncode == 1 and "2 layers" in shown.stdout and "truncated: tensor" in shown.stderr, shown


def test_files_that_are_no_gguf(tmp_path):
    path = tmp_path / "letter.gguf"
    path.write_text("Dear reader, this is no model.")
    check_refusal(inspect(str(path)), 1, "not a GGUF file")
    check_refusal(inspect(str(path), "--json"), 1, "not a GGUF file")
    check_refusal(inspect(str(tmp_path / "absent.gguf")), 1, "No such file")


def test_other_files_of_winnow_s_are_named(model, tmp_path):
    """For kept positions, a calibration and an exported document, the message names the kind of file and the command
    that takes it."""
    text, kept, calibration, exported = (str(tmp_path / name) for name in ("text.txt", "kept.json", "model.cal", "text.doc"))
    with open(text, "w") as file:
        file.write("some words to read " * 8)
    store = ("--store", str(tmp_path / "store"))
    for command in (
        ("run", "-m", model, "-f", text, "--raw", "-n", "1", "--dump-kept", kept),
        ("calibrate", model, text, "-o", calibration, "--raw"),
        ("docs", "add", "-m", model, text, "--name", "text", *store),
        ("docs", "export", "text", "-o", exported, *store),
    ):
        subprocess.run([WINNOW, *command], check=True, capture_output=True, timeout=PATIENCE)
    for path, taken_by in ((kept, "--kept"), (calibration, "--calibration"), (exported, "docs import")):
        check_refusal(inspect(path), 1, path, taken_by)
        check_refusal(inspect(path, "--json"), 1, path, taken_by)
