# SPDX-License-Identifier: Apache-2.0
import pytest
from fixtures import without_settings, work  # noqa: F401
from program import make_tiny_gguf


@pytest.fixture(scope="module")
def model(work):
    return make_tiny_gguf(f"{work}/tiny.gguf")
