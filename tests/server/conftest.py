# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys
import tempfile

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from program import make_tiny_gguf  # noqa: E402
from service import Server  # noqa: E402


@pytest.fixture(autouse=True)
def without_settings(monkeypatch):
    """What the user has set is not the tests' business."""
    for name in ("WINNOW_MODEL", "WINNOW_API_KEY", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def work():
    """A folder for all cases of a file."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        yield folder


@pytest.fixture(scope="module")
def model(work):
    return make_tiny_gguf(f"{work}/tiny.gguf", "llama", "chatml")


@pytest.fixture(scope="module")
def server(model):
    """One server for all cases of a file, which must be in order when they are through."""
    with Server(model, "--context", "100000") as one:
        yield one
        assert one.get("/health") == (200, {"status": "ok"})
        one.wait_until_idle()
