# SPDX-License-Identifier: Apache-2.0
"""winnow beside PyTorch and kvpress on this machine: reading a prompt and decoding after it, in turns.

speed.py --model MODEL.gguf --winnow PROGRAM [--text FILE] [--tokens 8192] [--new 128] [--budget 512] [--threads 2] [--repetitions 3] [--types float32 bfloat16]

PyTorch runs the same network by transformers, with scaled_dot_product_attention, in f32 and in bf16, with the full
cache and with kvpress's SnapKV and AdaKV(SnapKV). Prints tokens per second (best and median), and winnow's ratios to
the faster of the two types.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

import torch
import transformers
from kvpress import AdaKVPress, SnapKVPress
from transformers import DynamicCache

import weights

METHODS = {  # winnow's spec, and kvpress's press by the share of evicted entries
    "full": lambda share: None,
    "snapkv": lambda share: SnapKVPress(share, window_size=32),
    "ada-snapkv": lambda share: AdaKVPress(SnapKVPress(share, window_size=32)),
}


def seconds(work):
    begin = time.perf_counter()
    out = work()
    return time.perf_counter() - begin, out


@torch.no_grad()
def by_pytorch(model, ids, press, new):
    """The seconds of reading, and of greedily decoding `new` tokens."""
    cache = DynamicCache()
    with press(model) if press else nullcontext():
        reading, out = seconds(lambda: model(ids, past_key_values=cache, logits_to_keep=1))

    def decode(token):
        for i in range(new):
            position = torch.tensor([ids.shape[1] + i])
            logits = model(token, past_key_values=cache, cache_position=position, position_ids=position[None]).logits
            token = logits[:, -1].argmax(-1, keepdim=True)

    decoding, _ = seconds(lambda: decode(out.logits[:, -1].argmax(-1, keepdim=True)))
    return reading, decoding


def by_winnow(arguments, method):
    """The same by a winnow process, which runs each test once to warm up."""
    common = [arguments.winnow, "bench", "-m", arguments.model, "--engine", "winnow", "--kv", method, "-r", "1", "-o", "json"]
    common += ["--threads", str(arguments.threads)] + (["-f", arguments.text] if arguments.text else [])
    common += [] if method == "full" else ["--budget", str(arguments.budget)]
    tests = [["-p", str(arguments.tokens), "-n", "0"], ["-p", "0", "-n", str(arguments.new), "-d", str(arguments.tokens)]]
    rows = [json.loads(subprocess.run(common + test, check=True, capture_output=True, text=True).stdout)[0] for test in tests]
    return [(row["n_prompt"] or row["n_gen"]) / row["median_ts"] for row in rows]


def measure(arguments, models, ids):
    """{(side, method): [(reading, decoding), one for each repetition]}"""
    share = 1 - arguments.budget / arguments.tokens
    times = {}
    for repetition in range(arguments.repetitions + 1):
        for method, press in METHODS.items():
            for side, model in models.items():
                print(f"repetition {repetition}: {side}, {method}", file=sys.stderr)
                took = by_pytorch(model, ids, press(share), arguments.new)
                if repetition:  # the first one is the warm-up
                    times.setdefault((side, method), []).append(took)
            if repetition:
                times.setdefault(("winnow", method), []).append(by_winnow(arguments, method))
    return times


def table(times, tokens):
    rates = {key: [[count / s for s in column] for count, column in zip(tokens, zip(*values))] for key, values in times.items()}
    print("| | reading: best | median | decoding: best | median |\n|---|---|---|---|---|")
    for (side, method), columns in rates.items():
        print(f"| {side}, {method} | " + " | ".join(f"{max(c):.1f} | {statistics.median(c):.1f}" for c in columns) + " |")
    for method in METHODS:
        ratios = []
        for i in range(2):
            for best in (max, statistics.median):
                peers = [best(columns[i]) for (side, of), columns in rates.items() if side != "winnow" and of == method]
                ratios.append(f"{best(rates['winnow', method][i]) / max(peers):.2f}")
        print(f"| winnow / the faster, {method} | " + " | ".join(ratios) + " |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--winnow", default="winnow")
    parser.add_argument("--text")
    parser.add_argument("--tokens", type=int, default=8192)
    parser.add_argument("--new", type=int, default=128)
    parser.add_argument("--budget", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--types", nargs="+", default=["float32", "bfloat16"], help="of PyTorch")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.disable_progress_bar()
    tokenizer = weights.tokenizer(arguments.model)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "f32.gguf")
        weights.write_f32(arguments.model, path)
        models = {f"PyTorch {name}": weights.network(path).to(getattr(torch, name)) for name in arguments.types}
    if arguments.text:
        with open(arguments.text) as file:
            ids = torch.tensor([tokenizer.encode(file.read()).ids[: arguments.tokens]])
    else:
        ids = torch.randint(3, next(iter(models.values())).config.vocab_size, (1, arguments.tokens))
    table(measure(arguments, models, ids), (arguments.tokens, arguments.new))


main()
