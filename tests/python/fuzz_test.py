# SPDX-License-Identifier: Apache-2.0
"""No call breaks the package, whatever its arguments: 200 random sequences of calls. `make check-fuzz-python` goes on."""

import random

import pytest

from binding import CALLS, Binding, Choices, closed


@pytest.fixture
def binding(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return Binding(path, tmp_path)


@pytest.mark.parametrize("call", [call for call in CALLS if call is not closed])
def test_usual_arguments_are_not_refused(binding, call):
    call(binding, Choices(b""))


@pytest.mark.parametrize("seed", range(4))
def test_any_calls_return_or_are_refused_with_a_sentence(binding, seed):
    chance = random.Random(seed)
    for _ in range(50):
        binding.run(chance.randbytes(chance.randrange(120)))
