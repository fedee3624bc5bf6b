# SPDX-License-Identifier: Apache-2.0
"""`python -m winnow` is the command."""

import os
import pathlib
import sys

from winnow import _libraries


def main():
    """Becomes the command that the package brings, with this process's arguments."""
    program = os.fspath(pathlib.Path(__file__).parent / "bin" / "winnow")
    environment = dict(os.environ)
    if (folder := _libraries.folder()) is not None:
        paths = [os.fspath(folder), *filter(None, [environment.get("LD_LIBRARY_PATH")])]
        environment["LD_LIBRARY_PATH"] = os.pathsep.join(paths)
    os.execve(program, ["winnow", *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
