# SPDX-License-Identifier: Apache-2.0
"""Long answers from a cache that stays within its budget: winnow beside kvpress, on the same prompts and the same
tokens.

long_answers.py --model MODEL.gguf -o SCORES.jsonl TEXT… [--pieces 5] [--tokens 1900] [--answer 256] [--budgets 64 128 256] [--threads 2]

Takes evenly spaced pieces of --tokens tokens from each text, asks in turn for a continuation, a summary and a
discussion, and samples an answer from winnow's full cache. These tokens are forced through each of winnow's methods and
each press of kvpress, which compress the prompt after the question has been read, and keep compressing while the answer
is decoded. A score is the mean of KL(full || method) in nats after each of these tokens; winnow and kvpress each use
their own full cache. The module `winnow` must be in PYTHONPATH. Each prompt's scores are written to SCORES.jsonl at
once, and the same command, run again, continues from there.

Prints means, and the difference of each from winnow's last method with its 95 % interval (bootstrap over prompts).
"""

import argparse
import json
import os
import sys
from contextlib import nullcontext

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

import numpy as np
import torch
import transformers
from kvpress import DecodingPress, SnapKVPress

import presses
import winnow
from presses import finch, share

ASKED = {
    "story": "\n\nThe text breaks off here. Write on from there, at length and in its own style.",
    "summary": "\n\nSum up this text in detail, part by part.",
    "talk": "\n\nTwo friends have read this and disagree about it. Write down their long conversation, turn by turn.",
}
WINDOW = "snapkv:window=question,rows=max,kernel=1,gqa=max"
METHODS = ["h2o", "tova", "ems", "r-kv:buffer=16", "streaming-llm", f"decoding({WINDOW})", f"decoding(refit(ada({WINDOW}):floor=0.3,over=model))",
           f"decoding(refit(ada(span({WINDOW}):power=1.5):floor=0.3,over=model))"]  # fmt: skip

INTERVAL = 16  # tokens between compressions to INTERVAL / 2 entries below the budget, which is met on average
# The press that compresses the prompt, by the evicted share, the number of the question's tokens and the budget; and
# the press used while the answer is decoded, where SnapKV's window must be shorter than the interval.
PRESSES = {
    "SnapKV, window 8, no pooling": (lambda share, q, b: SnapKVPress(share, 8, 1), lambda: SnapKVPress(window_size=8, kernel_size=1)),
    "FINCH, then SnapKV": (lambda share, q, b: finch(share, min(q, b // 2)), lambda: SnapKVPress(window_size=8)),
}


def log_softmax(logits):
    shifted = logits.astype(np.float64) - logits.max(-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(-1, keepdims=True))


def divergence(full, other):
    """KL(full || other) for rows of logits."""
    p = log_softmax(full)
    return (np.exp(p) * (p - log_softmax(other))).sum(-1)


class Winnow:
    def __init__(self, path, threads):
        self.model = winnow.Model.load(path)
        self.session = winnow.Session(self.model, threads=threads, precision="f32")
        self.ends = [t for t in range(self.model.info.n_vocab) if self.model.ends(t)]

    def drawn(self, logits, random):
        """Draws a token other than those that end an answer."""
        p = np.exp(log_softmax(logits))
        p[self.ends] = 0
        return int(random.choice(len(p), p=p / p.sum()))

    def answer(self, text, question, count, budgets, random):
        """The drawn tokens, and {method: {budget: score}}."""
        named = [(m, b) for m in METHODS for b in budgets]
        caches = self.session.prefill(text, [question], ["full", *named])[0]
        logits = np.stack([cache.logits for cache in caches])
        tokens, sums = [], np.zeros(len(named))
        for _ in range(count):
            tokens.append(self.drawn(logits[0], random))
            logits = self.session.step(caches, [tokens[-1]] * len(caches))
            sums += divergence(logits[:1], logits[1:])
        return tokens, nested(named, sums / count)


def nested(named, values):
    out = {}
    for (name, budget), value in zip(named, values, strict=True):
        out.setdefault(name, {})[str(budget)] = float(value)
    return out


class Kvpress:
    def __init__(self, path):
        self.model = presses.network(path)

    @torch.no_grad()
    def forced(self, cache, position, tokens, press):
        """Logits after each token, [tokens][vocabulary]; the first token has the position `position`."""
        rows = []
        with press(self.model) if press else nullcontext():
            for at in torch.arange(position, position + len(tokens)).split(1):
                token = torch.tensor([[tokens[at.item() - position]]])
                out = self.model(token, past_key_values=cache, cache_position=at, position_ids=at[None])
                rows.append(out.logits[0, -1].numpy())
        return np.stack(rows)

    def scores(self, ids, question, tokens, budgets):
        named = [(name, b) for name in PRESSES for b in budgets]
        kept, _ = presses.read(self.model, ids, {(name, b): PRESSES[name][0](share(b, len(ids)), question, b) for name, b in named})
        full = self.forced(kept["full"], len(ids), tokens, None)
        return nested(named, [self.score(full, kept[each], len(ids), tokens, *each) for each in named])

    def score(self, full, cache, position, tokens, name, budget):
        press = DecodingPress(PRESSES[name][1](), INTERVAL, budget - INTERVAL // 2, hidden_states_buffer_size=INTERVAL)
        return divergence(full, self.forced(cache, position, tokens, press)).mean()


def prompts(model, arguments):
    """{id: (text, question)}"""
    out = {}
    for path in arguments.texts:
        with open(path) as file:
            tokens = model.tokenize(file.read())
        for i in range(arguments.pieces):
            begin = (len(tokens) - arguments.tokens) * (i + 1) // (arguments.pieces + 1)
            if begin < 0:
                raise SystemExit(f"{path} has {len(tokens)} tokens, fewer than a piece of {arguments.tokens}")
            kind = list(ASKED)[len(out) % len(ASKED)]
            text = model.pieces(tokens[begin : begin + arguments.tokens]).decode(errors="ignore")
            out[f"{path}-{i}-{kind}"] = (text, ASKED[kind])
    return out


def known_scores(path, settings):
    """The scores of an earlier run, which must have measured the same."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        lines = list(map(json.loads, file))
    if any(line["settings"] != settings for line in lines):
        raise SystemExit(f"{path} has scores of other settings than {settings}")
    return {line["id"]: line["kl"] for line in lines}


def measure(arguments):
    ours, theirs = Winnow(arguments.model, arguments.threads), Kvpress(arguments.model)
    settings = {"methods": METHODS, "presses": [*PRESSES], **{name: getattr(arguments, name) for name in ("pieces", "tokens", "answer", "budgets")}}
    scores = known_scores(arguments.output, settings)
    for number, (key, (text, question)) in enumerate(prompts(ours.model, arguments).items()):
        if key not in scores:
            tokens, of_winnow = ours.answer(text, question, arguments.answer, arguments.budgets, np.random.default_rng(number))
            before, after = ours.model.prompt(text, question)
            of_kvpress = theirs.scores([*before.tolist(), *after.tolist()], len(after), tokens, arguments.budgets)
            scores[key] = {"winnow": of_winnow, "kvpress": of_kvpress}
            with open(arguments.output, "a") as file:
                print(json.dumps({"id": key, "settings": settings, "kl": scores[key]}), file=file)
        print(f"{key}: {len(scores)} known", file=sys.stderr)
    return scores


def above(values, reference):
    """The mean difference and the ends of its 95 % interval."""
    difference = np.array(values) - np.array(reference)
    means = difference[np.random.default_rng(0).integers(len(difference), size=(10_000, len(difference)))].mean(-1)
    return difference.mean(), *np.quantile(means, [0.025, 0.975])


def table(scores, budgets):
    for budget in map(str, budgets):
        of = {(side, m): [s[side][m][budget] for s in scores.values()] for side in ("winnow", "kvpress") for m in next(iter(scores.values()))[side]}
        print(f"| {budget} entries, {len(scores)} prompts | KL | above the last method of winnow |\n|---|---:|---:|")
        for (side, method), values in sorted(of.items(), key=lambda item: np.mean(item[1])):
            more, low, high = above(values, of["winnow", METHODS[-1]])
            print(f"| {side}: {method} | {np.mean(values):.3f} | {more:.3f} ({low:.3f} to {high:.3f}) |")
        print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("texts", nargs="+")
    parser.add_argument("--model", required=True)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--pieces", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=1900)
    parser.add_argument("--answer", type=int, default=256)
    parser.add_argument("--budgets", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.disable_progress_bar()
    table(measure(arguments), arguments.budgets)


main()
