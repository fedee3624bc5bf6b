# SPDX-License-Identifier: Apache-2.0
import tempfile

import pytest
from program import make_tiny_gguf


@pytest.fixture(autouse=True)
def without_settings(monkeypatch):
    """What the user has set is not the tests' business."""
    for name in ("WINNOW_MODEL", "WINNOW_STORE", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def work():
    """A folder for all cases of a file."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        yield folder


@pytest.fixture(scope="module")
def model(work):
    return make_tiny_gguf(f"{work}/tiny.gguf")
