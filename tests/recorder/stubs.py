# SPDX-License-Identifier: Apache-2.0
"""Writes C functions that return 0 for the functions of one of NVIDIA's libraries that other libraries need, and an
object file does not have. Libraries that do not exist are left out.

usage: stubs.py TO NAME OBJECT LIBRARY...    NAME: the beginning of the functions' names, as a regular expression
"""
import pathlib
import re
import subprocess
import sys


def symbols(file, *options):
    listed = subprocess.run(["nm", *options, file], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in listed.splitlines() if line.split()}


to, name, recorder, *libraries = sys.argv[1:]
there = [library for library in libraries if pathlib.Path(library).exists()]
wanted = set().union(*(symbols(library, "--dynamic", "--undefined-only") for library in there))
missing = sorted(one for one in wanted - symbols(recorder, "--defined-only") if re.match(name, one))
pathlib.Path(to).write_text("".join(f"int {one}(void) {{ return 0; }}\n" for one in missing))
