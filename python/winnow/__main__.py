# SPDX-License-Identifier: Apache-2.0
"""Runs the command: `python -m winnow`."""

import os
import pathlib
import sys


def main():
    """Replaces this process by the package's command, with the same arguments."""
    program = os.fspath(pathlib.Path(__file__).parent / "bin" / "winnow")
    try:
        os.execv(program, ["winnow", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"winnow: cannot run the command at {program}: {error.strerror}")


if __name__ == "__main__":
    main()
