# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "server"))  # for the browser

from fixtures import thinks, without_settings, work  # noqa: E402, F401
from program import make_tiny_gguf  # noqa: E402


@pytest.fixture(scope="module")
def model(work):
    return make_tiny_gguf(f"{work}/tiny.gguf")
