# SPDX-License-Identifier: Apache-2.0
"""The program under test, WINNOW, and MAKE_TINY_GGUF, which makes small random models. ctest sets both variables."""

import os
import subprocess
import time

WINNOW = os.environ["WINNOW"]
TINY = os.environ["MAKE_TINY_GGUF"]
PATIENCE = 120  # seconds
with open(WINNOW, "rb") as program:
    ADDRESS_SANITIZED = b"__asan_init" in program.read()  # ASan's shadow memory takes terabytes


def make_tiny_gguf(path, *arguments):
    """Makes a small random model; the arguments can name an architecture and a chat template."""
    subprocess.run([TINY, path, *arguments], check=True)
    return path


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, condition
        time.sleep(0.01)


def lines_of(errors):
    """The lines of stderr without warnings."""
    return [line for line in errors.splitlines() if not line.startswith("warning:")]


def check_refusal(result, code, *parts):
    """Checks the exit code, one sentence on stderr with the given parts, and nothing on stdout."""
    assert result.returncode == code, result
    assert len(lines_of(result.stderr)) == 1, result.stderr
    for part in parts:
        assert part in result.stderr, (part, result.stderr)
    assert not result.stdout
