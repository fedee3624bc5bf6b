# SPDX-License-Identifier: Apache-2.0
"""bench/gpu/run.sh without a GPU: small programs stand in for the carried ones and for PyTorch. table.py computes its
figures from records written by hand."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2] / "bench/gpu"
HEAD = "#!/usr/bin/env python3\nimport json, os, pathlib, signal, sys, time\n"

# A row of winnow's bench for each engine, method, depth and prompt: a prompt takes a second for 1,024 tokens, a step 10 ms.
BENCH = """
def option(name, default=""):
    return sys.argv[sys.argv.index(name) + 1] if name in sys.argv else default

def row(engine, kv, prompt, depth, batch):
    own = engine == "winnow"
    work = {"least_operations": 2e12, "least_bytes": 4e9}
    return {"engine": engine, "kv": kv, "budget": option("--budget") if own and kv != "full" else None, "weight_type": pathlib.Path(option("-m")).stem,
            "batch": batch, "n_prompt": prompt, "n_gen": 0 if prompt else 64, "n_depth": depth, "samples_ts": [1024 if prompt else 100 * batch] * 2,
            "median_ts": 1024 if prompt else 100 * batch, "depth_reading": {"seconds": depth / 1024 if depth else None, **work}, **work}

if sys.argv[1] != "bench":
    sys.exit(print("winnow 0"))
assert pathlib.Path(option("-m")).read_text() == "model" and option("--device") == "cuda" and option("-o") == "json"
numbers = lambda name, default: [int(n) for n in option(name, default).split(",")]
tests = [(n, 0, 1) for n in numbers("-p", "0") if n] + [(0, d, b) for d in numbers("-d", "0") for b in numbers("-b", "1") if option("-n") != "0"]
methods = lambda engine: option("--kv").split(",") if engine == "winnow" else ["full"]
print(json.dumps([row(e, kv, *test) for test in tests for e in option("--engine").split(",") for kv in methods(e)]))
"""
MODEL = """
shape, kind, path, *rest = sys.argv[1:]
assert shape == "llama-3.1-8b" and (not rest or pathlib.Path(rest[1]).read_text() == "model")
pathlib.Path(path).write_text("model")
"""
PEER = """
print(json.dumps({"engine": sys.argv[1], "kv": "full", "budget": None, "weight_type": "bf16", "batch": 1, "n_prompt": 32768, "n_gen": 0, "n_depth": 0,
                  "min_s": 48, "median_s": 64, "runs": 3, "peak_bytes": 1, "card": "Card"}))
"""
COPY = """print('{"name": "copy 2 GiB", "gb_s": 2000.0, "tflops": 0.0}')"""
PRODUCT = """print('{"name": "product 8192 bf16", "gb_s": 0.0, "tflops": 500.0}')"""
# Prints what it has when it is interrupted, as winnow's bench does.
HANGS = """
def end(*_):
    print("[]", flush=True)
    sys.exit(1)
signal.signal(signal.SIGINT, end)
print("a warning", file=sys.stderr, flush=True)
time.sleep(600)
"""


class Machine:
    """A bare machine: the scripts, and carried programs that do nothing."""

    def __init__(self, folder):
        self.folder, self.scripts, self.records = folder, folder / "scripts", folder / "records"
        for name in ("scripts", "carried", "path", "models", "tmp"):
            (folder / name).mkdir()
        for name in ("run.sh", "table.py"):
            shutil.copy(SOURCE / name, self.scripts)
        for name in ("device_test", "device_parity_test", "device_prefill_test", "device_decode_test", "device_session_test"):
            self.program(f"carried/{name}", "print('passed')")
        self.program("carried/winnow", BENCH)
        self.program("carried/winnow_random_model", MODEL)
        self.program("carried/kernel_times", COPY)
        self.program("scripts/peers.py", PRODUCT)
        self.program("scripts/peers_end_to_end.py", PEER)
        self.program("path/nvidia-smi", "print('name, memory.total [MiB]')\nprint('Card, 0 MiB')")
        self.program("path/nvcc", "print('nvcc')")
        self.program("path/compute-sanitizer", "print('no errors')")

    def program(self, name, text):
        (self.folder / name).write_text(HEAD + text)
        (self.folder / name).chmod(0o755)

    def change(self, pattern, replacement):
        script = self.scripts / "run.sh"
        text, count = re.subn(pattern, replacement, script.read_text(), flags=re.MULTILINE)
        assert count, pattern
        script.write_text(text)

    def run(self, call, *parts, carried="carried", code=0):
        environment = {**os.environ, "PATH": f"{self.folder}/path:{os.environ['PATH']}", "TMPDIR": str(self.folder / "tmp")}
        done = subprocess.run(["bash", self.scripts / "run.sh", call, self.folder / carried, self.records, *parts], env=environment, capture_output=True,
                              text=True, timeout=300, check=False)  # fmt: skip
        assert done.returncode == code, (done.stdout, done.stderr)
        return done.stdout

    def parts(self):
        return dict(re.match(r"(\w[\w-]*): (\w+)", line).groups() for line in (self.records / "parts.txt").read_text().splitlines())

    def table(self):
        return (self.records / "table.md").read_text()


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def names_of(call):
    """The parts of a call, as run.sh lists them; a benchmark's model is another one."""
    body = re.search(rf"^  {call}\)\n(.*?)^    ;;", (SOURCE / "run.sh").read_text(), re.MULTILINE | re.DOTALL).group(1)
    names = set(re.findall(r"^    (?:part|measure|bench|peer) ([\w-]+) \d", body, re.MULTILINE))
    names |= {"copy", "product"} if "    rates\n" in body else {"memcheck", "racecheck", "synccheck", "initcheck"}
    return names | {f"model_{m}" for m in re.findall(r"^    bench \S+ \d+ (\w+)", body, re.MULTILINE)}


@pytest.mark.parametrize("call", ["right", "figures", "long", "batches"])
def test_every_part_of_a_call_runs(machine, call):
    machine.run(call)
    assert machine.parts() == dict.fromkeys(names_of(call), "done")
    assert list((machine.folder / "tmp").iterdir()) == [], "models are removed"


def test_records_and_a_table_are_made(machine):
    machine.run("figures")
    records = [json.loads(line) for line in (machine.records / "records.jsonl").read_text().splitlines()]
    (own,) = [r for r in records if r["name"] == "prefill 32,768, bf16, winnow, snapkv @ 1024" and r["warm"]]
    assert (own["min_s"], own["median_s"], own["runs"], own["card"]) == (32, 32, 2, "Card")
    assert re.search(r"^\| prefill 32,768, bf16 \| full \| 32.000 s \| 1,024.0 \| 0.004 s \| 0% \| 1.00 \| 2.00 \|  \| 1.00 \|$", machine.table(), re.MULTILINE)


def test_an_archive_is_unpacked(machine):
    subprocess.run(["tar", "-C", machine.folder / "carried", "-cJf", machine.folder / "carried.tar.xz", "."], check=True)
    machine.run("figures", "decode", carried="carried.tar.xz")
    assert machine.parts() == {"model_bf16": "done", "decode": "done"}


def test_a_failing_part_stops_no_other(machine):
    machine.program("scripts/peers_end_to_end.py", "sys.exit('no such module')")
    out = machine.run("figures", code=1)
    peers = {"transformers", "snapkv", "h2o", "ada-snapkv"}
    assert machine.parts() == dict.fromkeys(names_of("figures") - peers, "done") | dict.fromkeys(peers, "failed")
    assert "no such module" in out and "- h2o: failed (1)" in machine.table()


def test_a_model_that_cannot_be_made_is_not_left_half_written(machine):
    machine.program("carried/winnow_random_model", MODEL + "sys.exit('the disk is full')")
    machine.run("figures", "decode", code=1)
    assert machine.parts() == {"model_bf16": "failed", "decode": "failed"}


def test_a_part_over_its_limit_is_stopped(machine):
    machine.program("carried/kernel_times", HANGS)
    machine.change(r"measure copy \d+", "measure copy 2")
    machine.run("figures", code=1)
    assert machine.parts() == dict.fromkeys(names_of("figures") - {"copy"}, "done") | {"copy": "stopped"}
    assert (machine.records / "copy.json").read_text() == "[]\n", "what it had measured"
    assert "- copy: stopped after 2 s" in machine.table() and "- copy: a warning" in machine.table()
    assert "bandwidth of a copy unknown" in machine.table()


def test_a_call_ends_in_time(machine):
    machine.program("carried/kernel_times", HANGS)
    machine.change(r"^readonly seconds_of_call=\d+", "readonly seconds_of_call=7")
    machine.run("figures", "copy,product", code=1)
    assert machine.parts() == {"copy": "stopped", "product": "not"}, "not begun"


def test_unknown_calls_are_refused(machine):
    machine.run("figure", code=2)


def test_models_can_be_kept(machine):
    os.environ["WINNOW_MODELS"] = str(machine.folder / "models")
    try:
        machine.run("batches", "decode_q4_k_m")
        machine.run("figures", "decode")
    finally:
        del os.environ["WINNOW_MODELS"]
    made = [line for line in (machine.records / "parts.txt").read_text().splitlines() if line.startswith("model_")]
    assert len(made) == 2 and sorted(p.name for p in (machine.folder / "models").iterdir()) == ["bf16.gguf", "q4_k_m.gguf"]


def row(engine, kv="full", prompt=0, depth=0, batch=1, speeds=(), seconds=None, work=(0, 0), reading=(0, 0)):
    return {"engine": engine, "kv": kv, "budget": None if kv == "full" else "64", "weight_type": "BF16", "batch": batch, "n_prompt": prompt,
            "n_gen": 0 if prompt else 10, "n_depth": depth, "samples_ts": list(speeds), "median_ts": sorted(speeds)[len(speeds) // 2],
            "least_operations": work[0], "least_bytes": work[1],
            "depth_reading": {"seconds": seconds, "least_operations": reading[0], "least_bytes": reading[1]}}  # fmt: skip


def peer(engine, kv="full", prompt=0, depth=0, batch=1, median=0.0):
    return {"engine": engine, "kv": kv, "budget": None if kv == "full" else 64, "weight_type": "bf16", "batch": batch, "n_prompt": prompt,
            "n_gen": 0 if prompt else 10, "n_depth": depth, "min_s": median / 2, "median_s": median, "runs": 3, "card": "Card"}  # fmt: skip


def table_of(folder, rows, lines=(), *options, code=0):
    (folder / "own.json").write_text(json.dumps(rows))
    (folder / "peers.json").write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"half')
    done = subprocess.run([sys.executable, SOURCE / "table.py", folder, *options], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    cells = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines() if line.startswith("| ")][1:]
    return done, {(c[0], c[1]): c[2:] for c in cells if len(c) == 10}


RATE_LINES = [{"name": "copy 2 GiB", "gb_s": 1000.0, "tflops": 0.0}, {"name": "product 8192 bf16", "gb_s": 0.0, "tflops": 100.0}]


def test_ratios_are_of_medians_in_the_same_test(tmp_path):
    rows = [
        row("winnow", prompt=100, speeds=[25, 50, 100], work=(1e14, 1e9)),  # a floor of 1 s by operations; takes 2 s
        row("winnow", "snapkv", prompt=100, speeds=[20], work=(1e14, 3e12)),  # 3 s by bytes; takes 5 s
        row("winnow", prompt=200, speeds=[200]),
        row("llama.cpp", prompt=100, speeds=[10]),  # 10 s
        row("llama.cpp-fa", prompt=100, speeds=[12.5]),  # 8 s
        row("llama.cpp-fa", prompt=300, speeds=[1000]),
    ]
    peers = [peer("transformers", prompt=100, median=3), peer("kvpress snapkv", "snapkv", prompt=100, median=7.5), peer("kvpress h2o", "h2o", prompt=100, median=1)]
    _, table = table_of(tmp_path, rows, RATE_LINES + peers)
    assert table["prefill 100, bf16", "full"] == ["2.000 s", "50.0", "1.000 s", "50%", "4.00", "1.50", "", "1.00"]
    assert table["prefill 100, bf16", "snapkv @ 64"] == ["5.000 s", "20.0", "3.000 s", "60%", "1.60", "0.60", "1.50", "0.40"]
    assert table["prefill 200, bf16", "full"][4:] == ["", "", "", "1.00"]


def test_a_step_of_a_batch_is_counted_once(tmp_path):
    """200 tokens per second of 8 sequences are 25 steps; the work is that of ten steps."""
    rows = [row("winnow", depth=50, batch=8, speeds=[200], work=(1e12, 4e10), seconds=9)]
    peers = [peer("transformers", depth=50, batch=8, median=0.1), peer("compiled", depth=50, batch=8, median=0.06)]
    _, table = table_of(tmp_path, rows, RATE_LINES + peers)
    assert table == {("decode 50, batch 8, bf16", "full"): ["40.00 ms", "200.0", "4.00 ms", "10%", "", "1.50", "", "1.00"]}


def test_the_reading_of_a_depth_counts_unless_there_is_a_warm_one(tmp_path):
    rows = [row("winnow", depth=50, speeds=[10], seconds=4, reading=(2e14, 1)), row("llama.cpp-fa", depth=50, speeds=[10], seconds=6)]
    _, table = table_of(tmp_path, rows, RATE_LINES)
    assert table["prefill 50, bf16", "full"] == ["4.000 s (cold)", "12.5", "2.000 s", "50%", "1.50", "", "", "1.00"]
    _, table = table_of(tmp_path, [*rows, row("winnow", prompt=50, speeds=[100])], RATE_LINES)
    assert table["prefill 50, bf16", "full"][0] == "0.500 s"


def test_rates_can_be_given(tmp_path):
    rows = [row("winnow", prompt=100, speeds=[50], work=(1e14, 1e12))]
    assert table_of(tmp_path, rows)[1]["prefill 100, bf16", "full"][2:4] == ["", ""]
    given = table_of(tmp_path, rows, [], "--bandwidth", "500", "--rate", "200")[1]
    assert given["prefill 100, bf16", "full"][2:4] == ["2.000 s", "100%"]


def test_cards_are_not_mixed(tmp_path):
    (tmp_path / "versions.log").write_text("name, memory.total [MiB]\nOther card, 0 MiB\n")
    done, _ = table_of(tmp_path, [row("winnow", prompt=100, speeds=[50])], [peer("transformers", prompt=100, median=1)], code=1)
    assert "several cards: Card, Other card" in done.stderr
