# SPDX-License-Identifier: Apache-2.0
"""The code in the guide runs, and its specs exist."""

import pathlib
import re
import shutil

import pytest

import winnow

GUIDE = (pathlib.Path(__file__).parents[2] / "docs" / "guide" / "python.md").read_text()


@pytest.mark.parametrize("code", re.findall(r"```python\n(.*?)```", GUIDE, re.S))
def test_code_runs(code, path, text, tmp_path, monkeypatch, capsys):
    shutil.copy(path, tmp_path / "model.gguf")
    (tmp_path / "text.txt").write_text(text * 2)
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "docs/guide/python.md", "exec"), {"__name__": "guide"})
    assert capsys.readouterr().out


def test_specs_exist():
    cells = [line.split("|")[2] for line in GUIDE.splitlines() if re.match(r"\| .*Press", line)]
    specs = [spec for cell in cells for spec in re.findall(r"`([^`]+)`", cell) if spec != "winnow calibrate"]
    assert len(specs) >= 18
    for spec in specs:
        winnow.canonical(spec.replace("(X)", "(snapkv)"))
