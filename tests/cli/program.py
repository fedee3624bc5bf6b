# SPDX-License-Identifier: Apache-2.0
"""The program under test, which ctest names in the environment: WINNOW, and MAKE_TINY_GGUF for small random models."""

import os
import subprocess
import time

WINNOW = os.environ["WINNOW"]
TINY = os.environ["MAKE_TINY_GGUF"]
PATIENCE = 120  # seconds
with open(WINNOW, "rb") as program:
    ADDRESS_SANITIZED = b"__asan_init" in program.read()  # its shadow alone is terabytes


def make_tiny_gguf(path, *arguments):
    """A small random model: architecture and chat template may follow."""
    subprocess.run([TINY, path, *arguments], check=True)
    return path


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, condition
        time.sleep(0.01)


def lines_of(errors):
    """What was said on stderr, without the warnings."""
    return [line for line in errors.splitlines() if not line.startswith("warning:")]


def check_refusal(result, code, *parts):
    """Exit code, one sentence on stderr with what matters in it, nothing on stdout."""
    assert result.returncode == code, result
    assert len(lines_of(result.stderr)) == 1, result.stderr
    for part in parts:
        assert part in result.stderr, (part, result.stderr)
    assert not result.stdout
