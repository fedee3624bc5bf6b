#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the figures in the recipes with the papers' texts: check.py FOLDER [RECIPES]. FOLDER has sage-kv.txt,
ada-kv.txt, …, or other texts whose beginning names the paper.

A table's figures must be in the text as in the recipe: the numbers of each row (or of each column, if the paper's table
is transposed) on one line and in order. For a row with gaps and for a single figure, each number alone must be in the
text. Prints one line for each block of figures that is not found, and the number of figures by the way in which they
were found. Exits with 1 if any was not found.
"""

import json
import pathlib
import re
import sys

TITLES = {
    "sage-kv": "LLMs Know What to Drop",
    "ada-kv": "Ada-KV",
    "ahakv": "AhaKV",
    "ems": "EMS: Adaptive Evict-then-Merge",
    "samkv": "Sparse Attention across Multiple-context KV Cache",
}
NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?")


def lines_of(text):
    """The numbers of each line."""
    return [[float(number) for number in NUMBER.findall(line)] for line in text.splitlines()]


def stands_together(wanted, line):
    return any(line[i : i + len(wanted)] == wanted for i in range(len(line) - len(wanted) + 1))


def stands_in_order(wanted, line):
    numbers = iter(line)
    return all(any(number == one for number in numbers) for one in wanted)


def how(wanted, lines):
    """How a list of figures was found in the text."""
    if any(stands_together(wanted, line) for line in lines):
        return "together" if len(wanted) > 1 else "alone"
    if len(wanted) > 1 and any(stands_in_order(wanted, line) for line in lines):
        return "in order"
    return None


def check_block(values, lines):
    """The number of figures by the way in which they were found, and the figures that were not found."""
    rows = [[value for value in row if value is not None] for row in values]
    columns = [[row[c] for row in values if row[c] is not None] for c in range(len(values[0]))]
    ways = [[how(line, lines) for line in table if line] for table in (rows, columns)]
    best = columns if all(ways[1]) and (not all(ways[0]) or len(rows[0]) == 1) else rows
    found, missing = {}, []
    for line in filter(None, best):
        way = how(line, lines)
        if way:
            found[way] = found.get(way, 0) + len(line)
            continue
        for value in line:
            if how([value], lines):
                found["alone"] = found.get("alone", 0) + 1
            else:
                missing.append(value)
    return found, missing


def text_of(folder, paper):
    for path in sorted(folder.glob("*.txt")):
        text = path.read_text()
        if path.stem == paper or TITLES.get(paper, paper) in text[:400]:
            return text
    sys.exit(f"{folder} has no text of {paper}")


def main(folder, recipes=pathlib.Path(__file__).parent):
    total, failed = {}, 0
    for path in sorted(recipes.glob("*/*.json")):
        recipe = json.loads(path.read_text())
        blocks = recipe.get("figures", [])
        lines = lines_of(text_of(folder, recipe["paper"])) if blocks else []
        for block in blocks:
            found, missing = check_block(block["values"], lines)
            for way, count in found.items():
                total[way] = total.get(way, 0) + count
            if missing:
                failed += len(missing)
                print(f"{recipe['paper']}/{recipe['name']}, {block['model']}: not in the text: {missing}")
    print(", ".join(f"{count} figures {way}" for way, count in sorted(total.items())) + f", {failed} not found")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(*map(pathlib.Path, sys.argv[1:])))
