# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

from fixtures import thinks, without_settings, work  # noqa: E402, F401
from program import make_tiny_gguf  # noqa: E402
from service import Server  # noqa: E402


@pytest.fixture(scope="module")
def model(work):
    return make_tiny_gguf(f"{work}/tiny.gguf", "llama", "chatml")


@pytest.fixture(scope="module")
def server(model):
    """One server for all cases of a file; it must be in order when they are done."""
    with Server(model, "--context", "100000") as one:
        yield one
        assert one.get("/health") == (200, {"status": "ok"})
        one.wait_until_idle()


@pytest.fixture(scope="module")
def brief(server):
    """Fields of a request whose answer ends after eight tokens, or as soon after that as its grammar allows."""
    (end,) = server.good("/tokenize", {"content": "</s>"})["tokens"]
    return {"logit_bias": {str(end): 100}, "min_tokens": 8, "temperature": 0}
