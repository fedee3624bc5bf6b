# SPDX-License-Identifier: Apache-2.0
"""Includes of the folders of src/, compared with what their CMakeLists.txt allow.

A folder may include its own headers, those of the DEPS of its winnow_module() and of their DEPS in turn, and those of
its own PRIVATE_DEPS. Headers of include/winnow, which are installed, include only each other and the standard library.
"""

import re

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')


def lists_of(cmake):
    """The arguments of winnow_module() by keyword."""
    lists, keyword = {}, "NAME"
    for word in re.search(r"winnow_module\((.*?)\)", cmake, re.DOTALL)[1].split():
        if word in ("SOURCES", "KERNELS", "DEPS", "PRIVATE_DEPS"):
            keyword = word
        else:
            lists.setdefault(keyword, []).append(word)
    return lists


def rooms_in(words):
    return {word.removeprefix("winnow_") for word in words if word.startswith("winnow_")}


def allowed(source):
    """For each folder of src/, the folders that it may include, itself among them."""
    lists = {path.parent.name: lists_of(path.read_text()) for path in source.glob("src/*/CMakeLists.txt")}
    public = {room: rooms_in(words.get("DEPS", [])) for room, words in lists.items()}

    def closure(room):
        return {room}.union(*(closure(other) for other in public[room]))

    return {
        room: {room}.union(*(closure(other) for other in public[room] | rooms_in(words.get("PRIVATE_DEPS", []))))
        for room, words in lists.items()
    }


def includes(folder):
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".h", ".cc", ".in"):
            for number, line in enumerate(path.read_text().splitlines(), 1):
                if found := INCLUDE.match(line):
                    yield path, number, found[1], found[2]


def problems(source):
    """One line for each forbidden include."""
    may = allowed(source)
    for room, others in sorted(may.items()):
        for path, number, quote, header in includes(source / "src" / room):
            other = header.split("/")[0]
            if quote == '"' and other != "winnow" and other not in others:
                yield f"{path.relative_to(source)}:{number}: {room} may not use {other} ({header})"
    for path, number, quote, header in includes(source / "include" / "winnow"):
        installed = header.startswith("winnow/") if quote == '"' else "." not in header
        if not installed:
            yield f"{path.relative_to(source)}:{number}: {header} is not installed"
