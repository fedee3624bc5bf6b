# SPDX-License-Identifier: Apache-2.0
"""Model files that are no good or go bad while they are used: exit code 1, one sentence on stderr with what matters in
it, nothing on stdout."""

import json
import os
import struct
import subprocess

import pytest
from program import PATIENCE, WINNOW, check_refusal, lines_of


def run(arguments, **options):
    return subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE, **options)


def asking(path, *more):
    return ["run", "-m", path, "--raw", "-p", "hello", "-n", "4", *more]


@pytest.fixture(scope="module")
def good(model):
    with open(model, "rb") as file:
        return file.read()


@pytest.fixture
def variant(good, tmp_path):
    """A function that writes the model with some bytes changed."""

    def make(name, *changes):
        data = bytearray(good)
        for at, new in changes:
            data[at : at + len(new)] = new
        (tmp_path / name).write_bytes(data)
        return str(tmp_path / name)

    return make


def value_of(data, key):
    """The offset of a key's value in a GGUF."""
    return data.index(key) + len(key) + 4


@pytest.mark.parametrize("number, said", [(float("nan"), "nan"), (-1e-5, "-1e-05"), (float("inf"), "inf")])
def test_an_epsilon_that_cannot_be(good, variant, number, said):
    key = b"llama.attention.layer_norm_rms_epsilon"
    check_refusal(run(asking(variant("epsilon.gguf", (value_of(good, key), struct.pack("<f", number))))), 1, key.decode(), said)


def test_a_matrix_of_integers(good, variant):
    at = good.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4 + 2 * 8
    check_refusal(run(asking(variant("i32.gguf", (at, struct.pack("<I", 26))))), 1, "blk.0.attn_q.weight", "i32")


def test_weights_that_are_not_finite(good, variant):
    """The file ends with floats of the last layer's ffn_down."""
    nan = variant("nan.gguf", (len(good) - 64, struct.pack("<16f", *[float("nan")] * 16)))
    check_refusal(run(asking(nan)), 1, "blk.1.ffn_down.weight", "not a finite number")


@pytest.mark.parametrize("command", ["run", "inspect", "bench"])
def test_a_fifo(tmp_path, command):
    pipe = str(tmp_path / "pipe.gguf")
    os.mkfifo(pipe)
    arguments = {"run": asking(pipe), "inspect": ["inspect", pipe], "bench": ["bench", "-m", pipe]}[command]
    check_refusal(run(arguments), 1, "pipe.gguf", "not a regular file")


def test_escapes_in_a_name_are_shown(good, variant):
    shown = run(["inspect", variant("colours.gguf", (value_of(good, b"general.name") + 8, b"\x1b[7m"))])
    assert shown.returncode == 0 and "\x1b" not in shown.stdout and "\\x1b[7m" in shown.stdout, shown


def test_a_name_that_is_no_utf8(good, variant):
    shown = run(["inspect", "--json", variant("latin1.gguf", (value_of(good, b"general.name") + 8, b"t\xefny"))])
    assert shown.returncode == 0 and json.loads(shown.stdout)["name"].startswith("t"), shown


def test_escapes_in_the_architecture_are_shown(good, variant):
    result = run(asking(variant("kind.gguf", (value_of(good, b"general.architecture") + 8, b"\x1b[31m"))))
    assert result.returncode == 1 and "\x1b" not in result.stderr and "\\x1b[31m" in result.stderr, result


def test_a_file_that_is_cut_while_it_is_mapped(good, variant):
    cut = variant("cut.gguf")
    command = [WINNOW, "run", "-m", cut, "--raw", "-p", "hello", "-n", "1000000", "--ignore-eos"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(20)  # the answer has begun
    os.truncate(cut, len(good) // 2)
    _, errors = process.communicate(timeout=PATIENCE)
    (line,) = lines_of(errors.decode())
    assert process.returncode == 1 and "cut.gguf" in line and "truncated while" in line, line


def test_a_text_that_is_far_too_long(model, tmp_path):
    huge = str(tmp_path / "huge.txt")
    with open(huge, "wb") as file:
        file.write(b"many words " * 4_600_000)
    check_refusal(run(["run", "-m", model, "--raw", "-f", huge]), 1, "50600000 bytes", "tokens", "256")
    check_refusal(run(["docs", "add", "-m", model, "--store", str(tmp_path / "store"), huge]), 1, "tokens", "256")
    os.remove(huge)


def test_too_many_threads(model):
    check_refusal(run(asking(model, "--threads", "100000")), 2, "100000 threads")
