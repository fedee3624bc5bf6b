# SPDX-License-Identifier: Apache-2.0
"""Fixtures of all tests that run the command, including those in other folders."""

import tempfile

import pytest


@pytest.fixture(autouse=True)
def without_settings(monkeypatch):
    """Removes the user's own settings."""
    for name in ("WINNOW_MODEL", "WINNOW_STORE", "WINNOW_DATA", "WINNOW_API_KEY", "NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(scope="module")
def work():
    """A folder shared by all cases of a file."""
    with tempfile.TemporaryDirectory(prefix="winnow-") as folder:
        yield folder


THINKS = """{%- for m in messages %}{{ '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content + '<|im_end|>\\n' }}{% endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}
"""


@pytest.fixture(scope="module")
def thinks(work):
    """A template that opens a thought, which a tiny model does not end."""
    path = f"{work}/thinks.jinja"
    with open(path, "w") as file:
        file.write(THINKS)
    return path
