# SPDX-License-Identifier: Apache-2.0
"""Checks that an installed libwinnow.so exports exactly the names of winnow that the installed headers mark with
WINNOW_EXPORT.

exports.py LIBRARY INCLUDE
"""

import pathlib
import re
import subprocess
import sys

library, include = sys.argv[1:]
headers = "\n".join(path.read_text() for path in pathlib.Path(include).rglob("*.h") if path.name != "export.h")
declared = set(re.findall(r"(?:class|struct) WINNOW_EXPORT (\w+)", headers))
declared |= set(re.findall(r"^WINNOW_EXPORT [^;{]*?[\s&*](\w+)\(", headers, re.MULTILINE))


def name_of(symbol):
    """The exported symbol's first name after winnow's namespaces (not a parameter's); empty if it is not winnow's."""
    found = re.search(r"(?:^|[ &*])winnow::((?:policy|attention)::)?(\w+)", symbol.split("(")[0])
    return found[2] if found else ""


listed = subprocess.run(["nm", "-D", "--defined-only", "-C", library], capture_output=True, text=True, check=True).stdout
ours = [symbol for symbol in (line.split(maxsplit=2)[2] for line in listed.splitlines()) if name_of(symbol)]
strange = [symbol for symbol in ours if name_of(symbol) not in declared or "::Impl" in symbol.split("(")[0]]
missing = declared - {name_of(symbol) for symbol in ours}
for symbol in strange:
    print("exported without being declared so:", symbol)
for name in sorted(missing):
    print("declared as exported and not there:", name)
sys.exit(1 if strange or missing or not declared else 0)
