# SPDX-License-Identifier: Apache-2.0
"""tools/records.py, and the records and plots of docs/."""

import importlib.util
import json
import lzma
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TOOL = SOURCE / "tools/records.py"


def record(number, group="g", group_size=1):
    return {"task": "t", "id": f"{number}", "spec": "full", "budget": None, "kv_type": "f16", "protocol": "question-aware", "model_hash": "1", "prompt_hash": "2", "answer": "a text of theirs",
            "score": 0.1, "values": {"kl": 1e-9}, "bytes_held": 5, "timings": {"prefill_ms": 1, "decode_ms": 1}, "group": group, "group_size": group_size}  # fmt: skip


def run(folder, records, end="\n"):
    folder.mkdir()
    (folder / "records.jsonl").write_text("\n".join(json.dumps(one) for one in records) + end)
    return folder


def tool(*arguments):
    return subprocess.run([sys.executable, TOOL, *map(str, arguments)], capture_output=True, text=True, check=False)


def refused(done, sentence):
    assert done.returncode == 1 and done.stderr.count("\n") == 1 and sentence in done.stderr, done.stderr


def test_what_is_unpacked_was_packed_without_answers(tmp_path):
    records = [record(i) for i in range(3)]
    assert tool("--records", tmp_path / "packed", "pack", run(tmp_path / "run", records), "mine").returncode == 0
    assert tool("--records", tmp_path / "packed", "unpack", tmp_path / "out").returncode == 0
    lines = (tmp_path / "out/mine/records.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [{**one, "answer": ""} for one in records]


def test_a_file_is_not_replaced_by_other_records(tmp_path):
    folder = ("--records", tmp_path / "packed", "pack")
    assert tool(*folder, run(tmp_path / "run", [record(1)]), "mine").returncode == 0
    before = (tmp_path / "packed/mine.jsonl.xz").read_bytes()
    assert tool(*folder, tmp_path / "run", "mine").returncode == 0
    refused(tool(*folder, run(tmp_path / "other", [record(2)]), "mine"), "has other records")
    assert (tmp_path / "packed/mine.jsonl.xz").read_bytes() == before


def test_incomplete_runs_are_not_packed(tmp_path):
    folder = ("--records", tmp_path / "packed", "pack")
    refused(tool(*folder, run(tmp_path / "cut", [record(1)], end='\n{"task":'), "mine"), "ends within a record")
    refused(tool(*folder, run(tmp_path / "empty", [], end=""), "mine"), "is empty")
    refused(tool(*folder, run(tmp_path / "group", [record(1, group_size=2)]), "mine"), "has 1 of the 2 records of t 1")
    refused(tool(*folder, run(tmp_path / "other", [{"task": "t"}]), "mine"), "line 1 is not a record")
    refused(tool(*folder, tmp_path, "mine"), "has no records.jsonl")
    refused(tool(*folder, run(tmp_path / "good", [record(1)]), "../mine"), "is not a name")
    assert not (tmp_path / "packed").exists()


def test_a_damaged_or_missing_file_is_named(tmp_path):
    whole = lzma.compress(b"{}\n" * 1000)
    (tmp_path / "mine.jsonl.xz").write_bytes(whole[: len(whole) // 2])
    refused(tool("--records", tmp_path, "unpack", tmp_path / "out"), "cannot unpack")
    refused(tool("--records", tmp_path, "unpack", tmp_path / "out", "yours"), "has no yours.jsonl.xz")


def test_too_many_bytes_are_refused(tmp_path):
    spec = importlib.util.spec_from_file_location("records", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.MOST_BYTES = 100
    with pytest.raises(SystemExit, match="more than 100"):
        module.pack(run(tmp_path / "run", [record(1)]), "mine", tmp_path)


def test_published_records_are_listed_and_small_and_have_no_answers():
    table = (SOURCE / "docs/records/README.md").read_text()
    files = sorted((SOURCE / "docs/records").glob("*.jsonl.xz"))
    assert sum(file.stat().st_size for file in files) <= 20_000_000
    for file in files:
        assert f"| `{file.name}` |" in table, file
        assert all(json.loads(line)["answer"] == "" for line in lzma.decompress(file.read_bytes()).splitlines()), file


def test_published_plots_are_small():
    files = sorted((SOURCE / "docs/plots").glob("*.svg"))
    assert [file.stem for file in files] == ["quality-over-bytes", "quality-over-time"]
    for file in files:
        assert file.stat().st_size <= 60_000, file
