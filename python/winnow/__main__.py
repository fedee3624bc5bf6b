# SPDX-License-Identifier: Apache-2.0
"""`python -m winnow` is the command."""

import os
import pathlib
import sys


def main():
    """Becomes the command that the package brings, with this process's arguments."""
    program = os.fspath(pathlib.Path(__file__).parent / "bin" / "winnow")
    try:
        os.execv(program, ["winnow", *sys.argv[1:]])
    except OSError as error:
        sys.exit(f"winnow: cannot run the command at {program}: {error.strerror}")


if __name__ == "__main__":
    main()
