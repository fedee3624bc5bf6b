# SPDX-License-Identifier: Apache-2.0
"""papers/check.py finds figures that are missing in the paper's text. With the papers' texts (the folder WINNOW_PAPERS)
it finds none."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
TEXT = "A title\nMethod 128 256\nFull 50.5 51\nH2O 40.00 41.25\nAvg. 1.5 2.5 3.5\nOurs 7.5-1.0 8.25+2.0\n"


def check(*arguments):
    return subprocess.run([sys.executable, SOURCE / "papers/check.py", *arguments], capture_output=True, text=True)


def checked(folder, values):
    (folder / "recipes/p").mkdir(parents=True, exist_ok=True)
    (folder / "p.txt").write_text(TEXT)
    (folder / "recipes/p/table-1.json").write_text(json.dumps({"paper": "p", "name": "table-1", "figures": [{"model": "m", "values": values}]}))
    return check(folder, folder / "recipes")


@pytest.mark.parametrize(
    ("values", "said"),
    [
        pytest.param([[50.5, 51], [40, 41.25]], "4 figures together", id="rows"),
        pytest.param([[1.5], [2.5], [3.5]], "3 figures together", id="a_row_that_is_a_column_here"),
        pytest.param([[50.5, 51], [None, 41.25]], "1 figures alone, 2 figures together", id="a_gap"),
        pytest.param([[7.5, 8.25]], "2 figures in order", id="with_differences_between"),
    ],
)
def test_figures_of_the_text_are_found(tmp_path, values, said):
    result = checked(tmp_path, values)
    assert result.returncode == 0 and result.stdout == f"{said}, 0 not found\n", result


@pytest.mark.parametrize(
    ("values", "missing"),
    [
        pytest.param([[50.5, 51], [40, 41.26]], "[41.26]", id="another_digit"),
        pytest.param([[505, 51]], "[505]", id="no_point"),
        pytest.param([[0.5, 51]], "[0.5]", id="part_of_a_number"),
    ],
)
def test_other_figures_are_not(tmp_path, values, missing):
    result = checked(tmp_path, values)
    assert result.returncode == 1 and f"p/table-1, m: not in the text: {missing}\n" in result.stdout, result


def test_figures_in_another_order_are_not_together(tmp_path):
    assert checked(tmp_path, [[51, 50.5]]).stdout == "2 figures alone, 0 not found\n"


@pytest.mark.skipif("WINNOW_PAPERS" not in os.environ, reason="WINNOW_PAPERS is not set")
def test_the_recipes_have_the_papers_figures():
    result = check(os.environ["WINNOW_PAPERS"])
    assert result.returncode == 0, result.stdout
