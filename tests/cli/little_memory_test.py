# SPDX-License-Identifier: Apache-2.0
"""Too little memory: exit code 1, one sentence on stderr."""

import resource
import subprocess

import pytest
from program import ADDRESS_SANITIZED, PATIENCE, WINNOW, check_refusal, lines_of

pytestmark = pytest.mark.skipif(ADDRESS_SANITIZED, reason="its shadow alone is terabytes")


def run(megabytes, *arguments):
    """Runs the program with so much address space."""
    most = (megabytes << 20,) * 2
    return subprocess.run(
        [WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, most),
    )


def test_a_prompt_that_is_too_long_for_it(model, tmp_path):
    huge = tmp_path / "huge.txt"
    huge.write_text("some words " * 9_000)
    check_refusal(run(230, "run", "-m", model, "--raw", "-f", str(huge), "--json", "--threads", "1"), 1, "available")


def test_every_limit_from_a_start_to_an_answer(model):
    """The first limit is the one with which the program starts."""
    asking = ["run", "-m", model, "--raw", "-p", "hello", "-n", "4", "--threads"]
    starts = next(n for n in range(16, 1024, 2) if run(n, "methods").returncode == 0)
    for megabytes in range(starts, starts + 2000, 2):
        result = run(megabytes, *asking, "2", "-q")
        if result.returncode == 0:
            break
        # Stdout may have the beginning of an answer.
        assert result.returncode == 1 and len(lines_of(result.stderr)) == 1, (megabytes, result)
    check_refusal(run(megabytes + 100, *asking, "200"), 1, "200 threads")
