# SPDX-License-Identifier: Apache-2.0
"""Compares winnow's kept sets with kvpress's, on one model with the same f32 weights.

compare.py --model MODEL.gguf --winnow PROGRAM --data FOLDER      a table over six texts
compare.py --model MODEL.gguf --golden FOLDER                     writes kvpress's kept sets for a test of winnow
"""

import argparse
import json
import os
import sys
import tempfile

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

import torch
import transformers
from kvpress.utils import compute_n_kept

import kept
import weights
from pairs import PAIRS

SHARE = 0.75  # of the entries is evicted
TEXTS = [  # file of the data folder, first byte or line, bytes
    ("text/war-and-peace.txt", 40000, 4800),
    ("text/wikitext2-test.txt", 100000, 4500),
    ("needle/worked.txt", 2000, 5000),
    ("longbench-mini/gov_report.jsonl", 0, 6000),
    ("longbench-mini/lcc.jsonl", 0, 3600),
    ("longbench-mini/samsum.jsonl", 0, 4000),
]
GOLDEN_TEXT = "examples/demo/war-and-peace.txt"
GOLDEN_CUTS = {"war-and-peace-1.json": (400, 2000), "war-and-peace-2.json": (9000, 2400)}
GOLDEN_LAYERS = range(0, 30, 10)


def cut(text, first, length):
    """Bytes cut to whole characters."""
    return text[first : first + length].decode(errors="ignore").encode()


def read_text(data, name, first, length):
    with open(os.path.join(data, name), "rb") as file:
        if name.endswith(".jsonl"):
            return cut(json.loads(file.readline())["prompt"].encode(), first, length)
        return cut(file.read(), first, length)


def of_kvpress(model, tokenizer, text, pairs):
    """The number of tokens, the budget, and the kept sets of each pair, [layer][head][positions]."""
    ids = tokenizer.encode(text.decode()).ids
    found = {}
    for attention in {pair.attention for pair in pairs}:
        presses = {pair.name: pair.press(SHARE) for pair in pairs if pair.attention == attention}
        found.update(kept.by_kvpress(model, ids, presses, attention))
    return len(ids), compute_n_kept(len(ids), SHARE), [found[pair.name] for pair in pairs]


def table(model, tokenizer, path, arguments):
    shares = [[] for _ in PAIRS]
    for name, first, length in TEXTS:
        text = read_text(arguments.data, name, first, length)
        n, budget, expected = of_kvpress(model, tokenizer, text, PAIRS)
        print(f"{name}: {n} tokens, {budget} kept", file=sys.stderr)
        for pair, of_press, collected in zip(PAIRS, expected, shares):
            dump = kept.by_winnow(arguments.winnow, path, text, pair.spec_for(budget), budget, arguments.threads)
            if dump["n_prompt"] != n:
                raise SystemExit(f"{name} has {n} tokens here and {dump['n_prompt']} in winnow")
            of_text = [share for layer in kept.overlap(of_press, dump["layers"]) for share in layer]
            print(f"  {pair.name}: {sum(of_text) / len(of_text):.4f}, least {min(of_text):.4f}", file=sys.stderr)
            collected += of_text
    print("| press | winnow's spec | mean overlap | least |\n|---|---|---|---|")
    for pair, collected in zip(PAIRS, shares):
        spec = pair.spec.format(floor="…")
        print(f"| {pair.name} | `{spec}` | {100 * sum(collected) / len(collected):.2f} % | {100 * min(collected):.1f} % |")


def as_ranges(positions):
    """[0, 1, 2, 7] is "0-2 7"."""
    starts = [j for i, j in enumerate(positions) if i == 0 or positions[i - 1] != j - 1]
    ends = [j for i, j in enumerate(positions) if i + 1 == len(positions) or positions[i + 1] != j + 1]
    return " ".join(f"{a}-{b}" if a < b else f"{a}" for a, b in zip(starts, ends))


def write_golden(model, tokenizer, arguments):
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(root, GOLDEN_TEXT), "rb") as file:
        whole = file.read()
    pairs = [pair for pair in PAIRS if pair.golden]
    for name, (first, length) in GOLDEN_CUTS.items():
        text = cut(whole, first, length)
        n, budget, found = of_kvpress(model, tokenizer, text, pairs)
        head = {"text": GOLDEN_TEXT, "first": first, "bytes": len(text), "n_prompt": n, "budget": budget, "layers": list(GOLDEN_LAYERS)}
        lines = []
        for pair, layers in zip(pairs, found):
            ranges = [[as_ranges(head) for head in layers[i]] for i in GOLDEN_LAYERS]
            lines.append(f"{json.dumps(pair.spec_for(budget))}: {json.dumps(ranges)}")
        with open(os.path.join(arguments.golden, name), "w") as file:
            file.write(json.dumps(head)[:-1] + ', "kept": {\n' + ",\n".join(lines) + "\n}}\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--winnow", default="winnow")
    parser.add_argument("--data")
    parser.add_argument("--golden")
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if bool(arguments.data) == bool(arguments.golden):
        parser.error("one of --data and --golden, please")
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.disable_progress_bar()
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f32.gguf")
        weights.write_f32(arguments.model, path)
        model, tokenizer = weights.network(path), weights.tokenizer(path)
        if arguments.data:
            table(model, tokenizer, path, arguments)
        else:
            write_golden(model, tokenizer, arguments)


main()
