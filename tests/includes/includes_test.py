# SPDX-License-Identifier: Apache-2.0
"""The folders of src/ include only what they may, and forbidden includes are found."""

import pathlib

import pytest

import rooms

FILES = {
    "src/low/CMakeLists.txt": "winnow_module(low\n  SOURCES\n    a.cc)\n",
    "src/middle/CMakeLists.txt": "winnow_module(middle SOURCES b.cc DEPS winnow_low spdlog::spdlog)\n",
    "src/high/CMakeLists.txt": "winnow_module(high SOURCES c.cc DEPS winnow_middle PRIVATE_DEPS winnow_side)\n",
    "src/side/CMakeLists.txt": "winnow_module(side SOURCES d.cc)\n",
    "src/low/a.cc": '#include <vector>\n#include "low/a.h"\n#include "winnow/x.h"\n',
    "src/middle/b.cc": '#include "low/a.h"\n',
    "src/high/deep/c.cc": '#include "low/a.h"\n#include "middle/b.h"\n#include "side/d.h"\n',
    "src/side/d.cc": "",
    "include/winnow/x.h": '#include <vector>\n#include "winnow/y.h"\n',
}


def problems_of(folder, files):
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return list(rooms.problems(folder))


def test_winnow_includes_what_it_may():
    assert list(rooms.problems(pathlib.Path(__file__).resolve().parents[2])) == []


def test_what_is_allowed_is_no_problem(tmp_path):
    assert problems_of(tmp_path, FILES) == []


@pytest.mark.parametrize(
    ("file", "include", "problem"),
    [
        pytest.param("src/low/a.h", '#include "middle/b.h"\n', "src/low/a.h:1: low may not use middle (middle/b.h)", id="upwards"),
        pytest.param("src/low/a.h", '\n#  include "high/c.h"\n', "src/low/a.h:2: low may not use high (high/c.h)", id="over_two"),
        pytest.param("src/middle/b.cc", '#include "side/d.h"\n', "src/middle/b.cc:1: middle may not use side (side/d.h)", id="sideways"),
        pytest.param("include/winnow/y.h", '#include "low/a.h"\n', "include/winnow/y.h:1: low/a.h is not installed", id="from_the_api"),
        pytest.param("include/winnow/y.h", "#include <fmt/core.h>\n", "include/winnow/y.h:1: fmt/core.h is not installed", id="a_library"),
    ],
)
def test_what_is_not_allowed_is_found(tmp_path, file, include, problem):
    assert problems_of(tmp_path, {**FILES, file: include}) == [problem]
