# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests that run the command, also of those in other folders."""

import tempfile

import pytest


@pytest.fixture(autouse=True)
def without_settings(monkeypatch):
    """What the user has set is not the tests' business."""
    for name in ("WINNOW_MODEL", "WINNOW_STORE", "WINNOW_DATA", "WINNOW_API_KEY", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def work():
    """A folder for all cases of a file."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        yield folder
