# SPDX-License-Identifier: Apache-2.0
"""ctest names the package's folder in PYTHONPATH, the command in WINNOW, and MAKE_TINY_GGUF for a small random model."""

import os
import subprocess

import pytest

import winnow


@pytest.fixture(scope="session")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "tiny.gguf"
    subprocess.run([os.environ["MAKE_TINY_GGUF"], path, "llama", "chatml"], check=True)
    return str(path)


@pytest.fixture(scope="session")
def model(path):
    return winnow.Model.load(path)


@pytest.fixture
def session(model):
    return winnow.Session(model, threads=2)


@pytest.fixture(scope="session")
def text():
    return " ".join(f"word{i % 7}" for i in range(20))
