# SPDX-License-Identifier: Apache-2.0
"""Makes RECORDS/records.jsonl, one line for each measurement, and RECORDS/table.md from what the parts of run.sh wrote.

table.py RECORDS [--bandwidth GB/S] [--rate TFLOP/S]

A floor is the larger of two times: least bytes by bandwidth, and least operations by the rate of products in bf16. Both
rates were measured beside (kernel_times' copy and peers.py's product), unless they are given. A ratio is a peer's time
divided by winnow's, by the medians: above 1, winnow is faster.
"""

import argparse
import dataclasses
import json
import pathlib
import sys

COPY, PRODUCT = "copy 2 GiB", "product 8192 bf16"
PEERS = {"llama.cpp": "llama.cpp", "llama.cpp-fa": "llama.cpp", "transformers": "transformers", "compiled": "transformers"}


@dataclasses.dataclass(frozen=True, order=True)
class Test:
    weights: str
    kind: str  # prefill, or decode
    tokens: int  # of the prompt, or in the cache before the first step
    batch: int

    def __str__(self):
        batch = f", batch {self.batch}" if self.batch > 1 else ""
        return f"{self.kind} {self.tokens:,}{batch}, {self.weights}"


@dataclasses.dataclass
class Measurement:
    test: Test
    engine: str
    method: str  # with its budget
    min_s: float  # of a prompt, or of a decode step of all sequences
    median_s: float
    runs: int
    warm: bool  # others ran before it
    card: str
    operations: float = 0  # the least
    bytes: float = 0

    def record(self):
        return {"name": f"{self.test}, {self.engine}, {self.method}", **dataclasses.asdict(self)}


def objects(path):
    """The JSON objects of a file: an array, or one a line. The last line of a stopped part may be half an object."""
    text = path.read_text(errors="replace")
    try:
        values = json.loads(text)
        return values if isinstance(values, list) else [values]
    except json.JSONDecodeError:
        pass
    out = []
    for line in text.splitlines():
        try:
            out.append(json.loads(line))
        except json.JSONDecodeError:
            print(f"{path}: skipped a line that is not JSON", file=sys.stderr)
    return out


def method_of(row):
    return row["kv"] + (f" @ {row['budget']}" if row["budget"] else "")


def of_bench(row, card):
    """Measurements of a row of `winnow bench -o json`: the test, and the reading of the depth before it."""
    common = {"engine": row["engine"], "method": method_of(row), "card": card}
    weights = row["weight_type"].lower()
    tokens = row["n_prompt"] or row["batch"]  # of a prompt, or of a decode step
    seconds = [tokens / speed for speed in row["samples_ts"]]
    steps = row["n_gen"] or 1
    kind, length = ("prefill", row["n_prompt"]) if row["n_prompt"] else ("decode", row["n_depth"])
    yield Measurement(Test(weights, kind, length, row["batch"]), min_s=min(seconds), median_s=tokens / row["median_ts"], runs=len(seconds), warm=True,
                      operations=row["least_operations"] / steps, bytes=row["least_bytes"] / steps, **common)  # fmt: skip
    reading = row["depth_reading"]
    if row["n_depth"] and row["batch"] == 1:
        yield Measurement(Test(weights, "prefill", row["n_depth"], 1), min_s=reading["seconds"], median_s=reading["seconds"], runs=1, warm=False,
                          operations=reading["least_operations"], bytes=reading["least_bytes"], **common)  # fmt: skip


def of_peer(row):
    kind, length = ("prefill", row["n_prompt"]) if row["n_prompt"] else ("decode", row["n_depth"])
    return Measurement(Test(row["weight_type"], kind, length, row["batch"]), row["engine"], method_of(row), row["min_s"], row["median_s"], row["runs"],
                       warm=True, card=row["card"])  # fmt: skip


def card_of(folder):
    """The card's name in the log of nvidia-smi, whose first line is a heading."""
    log = folder / "versions.log"
    lines = log.read_text(errors="replace").splitlines() if log.exists() else []
    return lines[1].split(",")[0] if len(lines) > 1 and lines[0].startswith("name") else "unknown"


def read(folder):
    """All measurements, and the rates of kernels by their names."""
    card = card_of(folder)
    measurements, rates = [], {}
    for path in sorted(folder.glob("*.json")):
        for row in objects(path):
            if "samples_ts" in row:
                measurements += of_bench(row, card)
            elif "median_s" in row:
                measurements.append(of_peer(row))
            elif row.get("name") in (COPY, PRODUCT) and "error" not in row:
                rates[row["name"]] = row["gb_s"] * 1e9 if row["name"] == COPY else row["tflops"] * 1e12
    cards = {m.card for m in measurements} - {"unknown"}
    if len(cards) > 1:
        sys.exit(f"{folder} has records of several cards: {', '.join(sorted(cards))}")
    return measurements, rates


def best(measurements):
    """One measurement of each test, engine and method: a warm one rather than a cold one, and the one of most runs."""
    out = {}
    for m in measurements:
        key = m.test, m.engine, m.method
        if key not in out or (m.warm, m.runs) > (out[key].warm, out[key].runs):
            out[key] = m
    return out


def fastest(measurements):
    return min((m.median_s for m in measurements), default=None)


def ratio(peer, own):
    return "" if peer is None else f"{peer / own:.2f}"


def time_of(seconds, kind):
    return f"{seconds:.3f} s" if kind == "prefill" else f"{seconds * 1e3:.2f} ms"


def floor_of(m, rates):
    """Seconds, or None if a rate is unknown."""
    if not (rates.get(COPY) and rates.get(PRODUCT)):
        return None
    return max(m.bytes / rates[COPY], m.operations / rates[PRODUCT])


def row_of(own, by_key, rates):
    same_test = [m for m in by_key.values() if m.test == own.test]
    peer = lambda name: fastest(m for m in same_test if PEERS.get(m.engine) == name)
    press = fastest(m for m in same_test if m.engine.startswith("kvpress") and m.method == own.method)
    full = fastest(m for m in same_test if m.engine == "winnow" and m.method == "full")
    kind, seconds, floor = own.test.kind, own.median_s, floor_of(own, rates)
    tokens = own.test.batch if kind == "decode" else own.test.tokens
    cells = [str(own.test), own.method, time_of(seconds, kind) + ("" if own.warm else " (cold)"), f"{tokens / seconds:,.1f}"]
    cells += ["", ""] if floor is None else [time_of(floor, kind), f"{floor / seconds:.0%}"]
    cells += [ratio(value, seconds) for value in (peer("llama.cpp"), peer("transformers"), press, full)]
    return "| " + " | ".join(cells) + " |"


def table(measurements, rates):
    by_key = best(measurements)
    order = lambda m: (m.test, m.method != "full")
    cards = ", ".join(sorted({m.card for m in measurements}))
    rate = lambda name, unit, scale: f"{rates[name] / scale:,.0f} {unit}" if name in rates else "unknown"
    lines = [f"{cards}; bandwidth of a copy {rate(COPY, 'GB/s', 1e9)}, products in bf16 {rate(PRODUCT, 'TFLOP/s', 1e12)}", ""]
    lines += ["| test | method | winnow | tokens/s | floor | floor / winnow | × llama.cpp, full | × transformers, full | × kvpress, same | × own full |"]
    lines += ["|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"]
    lines += [row_of(m, by_key, rates) for m in sorted(by_key.values(), key=order) if m.engine == "winnow"]
    lines += ["", "| test | engine | method | least | median | runs |", "|---|---|---|---:|---:|---:|"]
    for m in sorted(by_key.values(), key=lambda m: (order(m), m.engine)):
        least, median = time_of(m.min_s, m.test.kind), time_of(m.median_s, m.test.kind)
        lines.append(f"| {m.test} | {m.engine} | {m.method} | {least} | {median} | {m.runs}{'' if m.warm else ', cold'} |")
    return "\n".join(lines) + "\n"


def warnings(folder):
    """Parts that did not end well, and warnings of those that did: such figures may mean something else."""
    parts = folder / "parts.txt"
    lines = [line for line in (parts.read_text().splitlines() if parts.exists() else []) if ": done" not in line]
    for log in sorted(folder.glob("*.log")):
        found = [line.strip() for line in log.read_text(errors="replace").splitlines() if "warning" in line.lower()]
        lines += [f"{log.stem}: {line}" for line in found[:3]]
    return "".join(f"- {line}\n" for line in lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=pathlib.Path)
    parser.add_argument("--bandwidth", type=float, help="GB/s")
    parser.add_argument("--rate", type=float, help="TFLOP/s of products in bf16")
    options = parser.parse_args()
    measurements, rates = read(options.records)
    rates |= {COPY: options.bandwidth * 1e9} if options.bandwidth else {}
    rates |= {PRODUCT: options.rate * 1e12} if options.rate else {}
    (options.records / "records.jsonl").write_text("".join(json.dumps(m.record()) + "\n" for m in measurements))
    text = table(measurements, rates) if measurements else "nothing was measured\n"
    (options.records / "table.md").write_text(text + ("\n" + warnings(options.records)).rstrip("\n") + "\n")
    print(text, end="")


main()
