#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the figures in the recipes with the papers' texts: check.py FOLDER [RECIPES], with texts sage-kv.txt, ada-kv.txt, …, or others
whose beginning names the paper.

A table's figures must stand in the text as they stand in the recipe: each row (or each column, where the paper has its table the other
way round) as numbers of one line, in their order. A row with gaps, or a figure alone, must stand there number by number. Prints one line
for each block of figures that is not so, and how many figures were found in which way. Ends with 1 when one was not found.
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
    """How a list of figures stands in the text."""
    if any(stands_together(wanted, line) for line in lines):
        return "together" if len(wanted) > 1 else "alone"
    if len(wanted) > 1 and any(stands_in_order(wanted, line) for line in lines):
        return "in order"
    return None


def check_block(values, lines):
    """How many figures stand in the text in which way, and those that do not."""
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
