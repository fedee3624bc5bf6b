# SPDX-License-Identifier: Apache-2.0
"""What the host's side does with a GPU: the order of copies and kernels, their numbers and sizes, and refusals. A
runtime that records (runtime.cc) takes the place of NVIDIA's; nothing is computed."""
import os
import pathlib
import subprocess

import pytest

import records

RECORDER = os.environ["WINNOW_RECORDER"]  # the libraries, with colons between them
LAUNCH_KERNELS = os.environ["LAUNCH_KERNELS"]
WINNOW = os.environ["WINNOW"]
KERNELS = pathlib.Path(os.environ["WINNOW_CUDA"])
GGML_CUDA = pathlib.Path(os.environ["GGML_CUDA"])

needs_ggml = pytest.mark.skipif(not GGML_CUDA.exists(), reason="libggml-cuda.so was not built (tools/get-deps.sh cuda)")


def record(path, *command, **variables):
    environment = {**os.environ, "LD_PRELOAD": RECORDER, "WINNOW_RECORD": str(path),
                   "LD_LIBRARY_PATH": f"{KERNELS.parent}:{GGML_CUDA.parent}", **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    subprocess.run([os.environ["MAKE_TINY_GGUF"], str(path)], check=True)
    return path


def ask(model, path, *options, words=40, tokens=8, **variables):
    text = path.with_suffix(".txt")
    text.write_text("A word and more. " * (words // 4))
    return record(path, WINNOW, "run", "-m", str(model), "-f", str(text), "-p", "Who?", "-n", str(tokens), "--raw",
                  "--ignore-eos", "--threads", "2", "--device", "cuda", *options, **variables)


def work(what, stream):
    return records.Record(what, stream, ["kernel", "1,1,1", "1,1,1", "0"] if what == "launch" else ["8"])


COPY, KERNEL, WAIT = work("to device", "per thread 1"), work("launch", "5"), work("synchronize", "per thread 1")


@pytest.mark.parametrize("recorded,is_ordered", [
    ([COPY, KERNEL], False),
    ([COPY, WAIT, KERNEL], True),
    ([KERNEL, work("to host", "per thread 1")], False),
    ([KERNEL, work("synchronize", "5"), work("to host", "per thread 1")], True),
    ([COPY, work("launch", "legacy"), work("to host", "per thread 1")], True),
    ([work("launch", "legacy"), WAIT, KERNEL], False),  # the other stream has no work that waited for the kernel
    ([work("launch", "legacy"), work("to host", "per thread 1"), WAIT, KERNEL], True),
    ([COPY, work("to host", "per thread 2")], False),
    ([COPY, work("synchronize", "legacy"), KERNEL], True),
])
def test_a_check_of_order_finds_what_does_not_wait(recorded, is_ordered):
    assert (records.out_of_order(recorded) == []) == is_ordered


def test_launches_of_large_models_are_within_a_gpus_limits(tmp_path):
    done = record(tmp_path / "record", LAUNCH_KERNELS)
    assert done.returncode == 0 and done.stdout == "", done.stdout + done.stderr
    recorded = records.read(tmp_path / "record")
    assert len(records.launches(recorded)) > 100
    assert records.beyond_limits(recorded) == []


@needs_ggml
@pytest.mark.parametrize("method", ["full", "snapkv", "h2o", "decoding(snapkv)", "quest"])
def test_every_copy_and_kernel_waits_for_what_it_needs(model, tmp_path, method):
    budget = [] if method == "full" else ["--budget", "100"]
    done = ask(model, tmp_path / "record", "--kv", method, *budget)
    assert done.returncode == 0, done.stderr
    recorded = records.read(tmp_path / "record")
    assert any(records.is_winnows(launch.name) for launch in records.launches(recorded))
    assert records.out_of_order(recorded)[:3] == []
    assert records.beyond_limits(recorded) == []


@needs_ggml
def test_a_layers_step_has_four_kernels_of_winnow(model, tmp_path):
    """One stores keys and values, one keeps them for the host, one reads, one merges."""
    layers = 2  # of make_tiny_gguf

    def kernels(tokens):
        done = ask(model, tmp_path / "record", "--kv", "snapkv", "--budget", "100", tokens=tokens)
        assert done.returncode == 0, done.stderr
        return sum(records.is_winnows(launch.name) for launch in records.launches(records.read(tmp_path / "record")))

    assert kernels(9) - kernels(5) == 4 * 4 * layers


@needs_ggml
@pytest.mark.parametrize("error,words", [(100, "no CUDA-capable device"), (35, "driver version is insufficient")])
def test_a_machine_without_a_gpu_or_driver_is_named(model, tmp_path, error, words):
    done = ask(model, tmp_path / "record", WINNOW_RECORD_ERROR=str(error))
    assert done.returncode == 2, done.stderr
    assert words in done.stderr and len(done.stderr.splitlines()) == 1, done.stderr


@needs_ggml
@pytest.mark.parametrize("allocation", range(1, 12))
def test_a_full_gpu_is_a_sentence(model, tmp_path, allocation):
    done = ask(model, tmp_path / "record", "--kv", "snapkv", "--budget", "100", WINNOW_RECORD_FAIL=str(allocation))
    assert done.returncode in (0, 1), done.stderr
    assert done.returncode == 0 or "available" in done.stderr or "lack of memory" in done.stderr, done.stderr
