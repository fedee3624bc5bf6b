# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

import pytest

for folder in ("cli", "server"):  # for the command and its server
    sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / folder))

from fake_hub import Hub  # noqa: E402
from fixtures import without_settings, work  # noqa: E402, F401


@pytest.fixture(autouse=True)
def hub(monkeypatch, tmp_path):
    """A hub that the command uses instead of the one on the internet, and an empty cache."""
    for name in ("MODEL_ENDPOINT", "HF_TOKEN", "LLAMA_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    hub = Hub()
    monkeypatch.setenv("HF_ENDPOINT", hub.address)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    yield hub
    hub.stop()
