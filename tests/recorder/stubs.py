# SPDX-License-Identifier: Apache-2.0
"""Writes C functions that return 0 for all functions of NVIDIA's libraries that the given libraries need and the
recorder does not have. Libraries that do not exist are left out.

usage: stubs.py RECORDER LIBRARY...
"""
import pathlib
import re
import subprocess
import sys


def symbols(library, kind):
    listed = subprocess.run(["nm", "--dynamic", kind, library], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines() if line.split()}


recorder, *libraries = sys.argv[1:]
wanted = set().union(*(symbols(library, "--undefined-only") for library in libraries if pathlib.Path(library).exists()))
nvidias = {name for name in wanted if re.match(r"(__cuda|cuda|cublas|cu[A-Z]|nv[A-Z])", name)}
for name in sorted(nvidias - symbols(recorder, "--defined-only")):
    print(f"int {name}(void) {{ return 0; }}")
