#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Packs records of winnow eval into docs/records, and unpacks them for winnow eval report and plot."""

import argparse
import collections
import json
import lzma
import pathlib
import re
import sys

RECORDS = pathlib.Path(__file__).resolve().parents[1] / "docs" / "records"
ENDING = ".jsonl.xz"
MOST_BYTES = 20_000_000  # of all packed files together
FIELDS = {"task", "id", "spec", "budget", "kv_type", "protocol", "model_hash", "prompt_hash", "answer", "score", "bytes_held", "timings", "group", "group_size"}


def read_record(line, place):
    try:
        record = json.loads(line)
    except ValueError as error:
        sys.exit(f"{place} is not a record: {error}")
    missing = FIELDS - record.keys() if isinstance(record, dict) else FIELDS
    if missing:
        sys.exit(f"{place} is not a record: it has no {min(missing)}")
    return record


def read_run(folder):
    """Returns the records of a complete run. Exits if it was stopped before its end."""
    file = folder / "records.jsonl"
    if not file.is_file():
        sys.exit(f"{folder} has no records.jsonl")
    if any(folder.glob("part-*/winnow-part")):
        sys.exit(f"{folder} has records of single processes: run the same winnow eval again, which puts them together")
    lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    if lines.pop() != "" or not lines:
        sys.exit(f"{file} {'ends within a record' if lines else 'is empty'}: run the same winnow eval again")
    records = [read_record(line, f"{file} line {number}") for number, line in enumerate(lines, 1)]
    found = collections.Counter(record["group"] for record in records)
    for record in records:
        if found[record["group"]] < record["group_size"]:
            sys.exit(f"{file} has {found[record['group']]} of the {record['group_size']} records of {record['task']} {record['id']}: run the same winnow eval again")
    return records


def packed(records):
    """Compresses records without their answers, which no table needs, and which may repeat texts that are others'."""
    lines = "".join(json.dumps({**record, "answer": ""}, ensure_ascii=False, separators=(",", ":")) + "\n" for record in records)
    return lzma.compress(lines.encode(), preset=6 | lzma.PRESET_EXTREME)


def unpacked(file):
    try:
        return lzma.decompress(file.read_bytes())
    except (OSError, lzma.LZMAError) as error:
        sys.exit(f"cannot unpack {file}: {error}")


def pack(run, name, into):
    if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", name):
        sys.exit(f"{name} is not a name of lower-case letters, digits and single dashes")
    data = packed(read_run(run))
    file = into / (name + ENDING)
    if file.exists():
        if unpacked(file) != lzma.decompress(data):
            sys.exit(f"{file} has other records: choose another name, or remove it first")
        return print(f"{file} has these records already")
    size = len(data) + sum(other.stat().st_size for other in into.glob("*" + ENDING))
    if size > MOST_BYTES:
        sys.exit(f"with {file.name} ({len(data):,} bytes) {into} would have {size:,} bytes, more than {MOST_BYTES:,}")
    into.mkdir(parents=True, exist_ok=True)
    file.write_bytes(data)
    print(f"{file}: {len(data):,} bytes; all together {size:,} of {MOST_BYTES:,}. Add a line to {into / 'README.md'}")


def unpack(to, names, source):
    for name in names or sorted(file.name.removesuffix(ENDING) for file in source.glob("*" + ENDING)):
        file = source / (name + ENDING)
        if not file.is_file():
            sys.exit(f"{source} has no {file.name}: pack it first with tools/records.py pack RUNDIR {name}")
        folder = to / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "records.jsonl").write_bytes(unpacked(file))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=pathlib.Path, default=RECORDS, metavar="FOLDER", help="of the packed files (default: docs/records)")
    commands = parser.add_subparsers(dest="command", required=True)
    packing = commands.add_parser("pack", help="add the records of a run, its -o DIR, as NAME.jsonl.xz")
    packing.add_argument("run", type=pathlib.Path, metavar="DIR")
    packing.add_argument("name", metavar="NAME")
    unpacking = commands.add_parser("unpack", help="write NAME.jsonl.xz as FOLDER/NAME/records.jsonl, or all of them")
    unpacking.add_argument("to", type=pathlib.Path, metavar="FOLDER")
    unpacking.add_argument("names", nargs="*", metavar="NAME")
    chosen = parser.parse_args()
    if chosen.command == "pack":
        pack(chosen.run, chosen.name, chosen.records)
    else:
        unpack(chosen.to, chosen.names, chosen.records)


if __name__ == "__main__":
    main()
