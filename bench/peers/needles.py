# SPDX-License-Identifier: Apache-2.0
"""Hidden answers after compression by kvpress, beside winnow's on the same prompts.

needles.py --model MODEL.gguf --samples SAMPLES.jsonl --records FOLDER -o SCORES.jsonl [--budgets 64 128 256] [--threads 2]
           [--protocol question-aware|question-agnostic]

SAMPLES.jsonl is the output of `winnow eval needles/one --raw --print-samples`, and FOLDER has winnow's records of these
samples with the same protocol. Question-aware, a press compresses the whole prompt; question-agnostic, only the text.
PyTorch runs the same network in f32. It reads a prompt once for all presses, and once more for each KVzip, and
continues from each press's kept entries. Each prompt's scores are written to SCORES.jsonl at once, and the same
command, run again, continues from there.

Prints the percentage of found answers, averaged over the kinds of answers, for the samples that both full caches
answer. KVzip hides entries instead of removing them, which makes no difference to its answers. Other presses that hide
entries (AdaKV, and CriticalKV with it) are left out.
"""

import argparse
import copy
import json
import os
import sys
from collections import defaultdict
from statistics import mean

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

import gguf
import kvpress.presses.kvzip_press
import torch
import transformers
from kvpress import ChunkKVPress, CompactorPress, ExpectedAttentionPress, KVzipPress, SnapKVPress
from transformers import DynamicCache

import presses
import weights
from presses import finch, share

AWARE = {  # by the evicted share and the number of the question's tokens
    "SnapKV": lambda share, question: SnapKVPress(share),
    "SnapKV, window 8, kernel 31": lambda share, question: SnapKVPress(share, window_size=8, kernel_size=31),
    "SnapKV, the question as window, kernel 31": lambda share, question: SnapKVPress(share, window_size=question, kernel_size=31),
    "ChunkKV(SnapKV)": lambda share, question: ChunkKVPress(SnapKVPress(share)),
    "ChunkKV(SnapKV, window 8)": lambda share, question: ChunkKVPress(SnapKVPress(share, window_size=8)),
    "ChunkKV(SnapKV, the question as window)": lambda share, question: ChunkKVPress(SnapKVPress(share, window_size=question)),
    "FINCH, positions as they were": finch,
    "Compactor": lambda share, question: CompactorPress(share),
}
AGNOSTIC = {  # by the evicted share
    "SnapKV": SnapKVPress,
    "ChunkKV(SnapKV)": lambda share: ChunkKVPress(SnapKVPress(share)),
    "Compactor": CompactorPress,
    "ExpectedAttention": ExpectedAttentionPress,
}


class SharesOfKVzip(KVzipPress):
    """Scores once, and records in `hidden` the entries that each of several shares would hide: [share][layer]."""

    def compress_post(self, model):
        self.hidden = []
        for self.compression_ratio in self.shares:  # all above 0; with 0 the press would silently hide nothing
            super().compress_post(model)
            self.hidden.append([layer.self_attn.masked_key_indices for layer in model.model.layers])


KVZIPS = {"KVzip": {}, "KVzip+": {"kvzip_plus_normalization": True}}


class PlainTokenizer:
    """The interface of a tokenizer that KVzip needs: the text after a prompt, and tokens."""

    chat_template = None

    def __init__(self, tokenizer):
        self.tokenizer = tokenizer

    def encode(self, text, return_tensors, add_special_tokens):
        return torch.tensor([self.tokenizer.encode(text).ids], dtype=torch.long)


class Reader:
    """One model, its tokenizer, and the tokens that end an answer."""

    def __init__(self, path):
        self.model, self.tokenizer = presses.network(path), weights.tokenizer(path)
        # The only end token in this family's plain texts.
        self.end = gguf.GGUFReader(path).fields["tokenizer.ggml.eos_token_id"].contents()

    def tokens(self, text):
        return self.tokenizer.encode(text).ids

    @torch.no_grad()
    def read_kvzip(self, ids, shares, settings):
        """The whole cache, and the entries that each share hides in its layers."""
        cache = DynamicCache()
        press = SharesOfKVzip(shares[0], **settings)
        press.shares = shares
        kvpress.presses.kvzip_press.AutoTokenizer = self  # the press calls its from_pretrained()
        with press(self.model):
            self.model(torch.tensor([ids]), past_key_values=cache, logits_to_keep=1)
        self.show_all()
        return cache, press.hidden

    def from_pretrained(self, path):
        return PlainTokenizer(self.tokenizer)

    def show_all(self):
        self.hide([None] * len(self.model.model.layers))

    def hide(self, hidden):
        for layer, of_layer in zip(self.model.model.layers, hidden, strict=True):
            layer.self_attn.masked_key_indices = of_layer

    @torch.no_grad()
    def next_token(self, cache, ids, position):
        at = torch.arange(position, position + len(ids))
        logits = self.model(torch.tensor([ids]), past_key_values=cache, cache_position=at, position_ids=at[None], logits_to_keep=1).logits
        return logits[0, -1].argmax().item()

    def answer(self, cache, token, position, count):
        """Up to `count` greedy tokens, beginning with `token` at `position`."""
        out = [token]
        while len(out) < count and out[-1] != self.end:
            out.append(self.next_token(cache, out[-1:], position + len(out) - 1))
        return self.tokenizer.decode(out)


def found(answer, references):
    return mean(reference.lower() in answer.lower() for reference in references)


def of_sample_aware(reader, sample, budgets):
    """{(method, budget): answer}, and {full: answer} for the full cache."""
    text, question = reader.tokens(sample["text"]), reader.tokens(sample["question"])
    ids = text + question
    of_budgets = {(name, b): make(share(b, len(ids)), len(question)) for name, make in AWARE.items() for b in budgets}
    kept, logits = presses.read(reader.model, ids, of_budgets)
    return {key: reader.answer(cache, logits.argmax().item(), len(ids), sample["max_tokens"]) for key, cache in kept.items()}


def of_sample_agnostic(reader, sample, budgets):
    """The same with the question read after compression."""
    text, question = reader.tokens(sample["text"]), reader.tokens(sample["question"])

    def answer(cache):
        first = reader.next_token(cache, question, len(text))
        return reader.answer(cache, first, len(text) + len(question), sample["max_tokens"])

    kept, _ = presses.read(reader.model, text, {(name, b): make(share(b, len(text))) for name, make in AGNOSTIC.items() for b in budgets})
    out = {key: answer(cache) for key, cache in kept.items()}
    for name, settings in KVZIPS.items():
        cache, hidden = reader.read_kvzip(text, [1 - b / len(text) for b in budgets], settings)
        for b, of_layers in zip(budgets, hidden, strict=True):
            reader.hide(of_layers)
            out[name, b] = answer(copy.deepcopy(cache))  # answering appends to the cache and overwrites hidden keys
        reader.show_all()
    return out


OF_SAMPLE = {"question-aware": of_sample_aware, "question-agnostic": of_sample_agnostic}


def scores_of(answers, sample):
    """{method: {budget: score}}, and {full: score} for the full cache."""
    scores = defaultdict(dict)
    for key, answer in answers.items():
        score = found(answer, sample["outputs"])
        if key == "full":
            scores["full"] = score
        else:
            scores[key[0]][key[1]] = score
    return scores


def by_winnow(folder):
    """{id: {method: {budget: score}}}, as scores_of() has them, and {id: tokens}."""
    scores, tokens = defaultdict(lambda: defaultdict(dict)), {}
    with open(os.path.join(folder, "records.jsonl")) as file:
        for record in map(json.loads, file):
            of, spec, budget = scores[record["id"]], record["spec"], record.get("budget")
            if spec in of and (budget is None or int(budget) in of[spec]):
                raise SystemExit(f"{folder} has more than one record of {record['id']} with {spec}")
            if budget is None:
                of[spec] = record["score"]
            else:
                of[spec][int(budget)] = record["score"]
            tokens[record["id"]] = record["prompt_tokens"]
    return scores, tokens


def checked(samples, measured, tokens, reader, most):
    for sample in samples:
        text = len(reader.tokens(sample["text"]))
        n = text + len(reader.tokens(sample["question"]))
        if n != tokens[sample["id"]] or "full" not in measured[sample["id"]]:
            raise SystemExit(f"{sample['id']} has {n} tokens here, in winnow's records {tokens[sample['id']]}, and needs one of `full`")
        if text <= most:
            raise SystemExit(f"{sample['id']} has a text of {text} tokens: a budget of {most} evicts nothing of it")
    return samples


def known_scores(path, protocol, budgets):
    """The scores of an earlier run, which must have measured the same."""
    if not os.path.exists(path):
        return {}
    with open(path) as file:
        lines = list(map(json.loads, file))
    methods = {"full", *(AWARE if protocol == "question-aware" else {**AGNOSTIC, **KVZIPS})}
    for scores in (line["scores"] for line in lines):
        if set(scores) != methods or any(set(of) != set(map(str, budgets)) for method, of in scores.items() if method != "full"):
            raise SystemExit(f"{path} has scores of other methods or budgets")
    return {line["id"]: line["scores"] for line in lines}


def shares(scores, kinds):
    """{method: {budget: percent}}"""
    of = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for sample, methods in scores.items():
        for method, budgets in methods.items():
            for budget, score in budgets.items() if method != "full" else ():
                of[method][int(budget)][kinds[sample]].append(score)
    return {m: {b: 100 * mean(mean(s) for s in by_kind.values()) for b, by_kind in budgets.items()} for m, budgets in of.items()}


def table(title, scores, kinds, budgets):
    print(f"| {title}, {len(scores)} samples | " + " | ".join(map(str, budgets)) + " |")
    print("|---|" + "---:|" * len(budgets))
    for method, of in sorted(shares(scores, kinds).items(), key=lambda item: -sum(item[1].values())):
        print(f"| {method} | " + " | ".join(f"{of[b]:.0f}" if b in of else "" for b in budgets) + " |")
    print()


def measure(reader, samples, arguments):
    scores = known_scores(arguments.output, arguments.protocol, arguments.budgets)
    for sample in samples:
        if sample["id"] not in scores:
            torch.manual_seed(0)  # for Compactor's random directions
            scores[sample["id"]] = scores_of(OF_SAMPLE[arguments.protocol](reader, sample, arguments.budgets), sample)
            with open(arguments.output, "a") as file:
                print(json.dumps({"id": sample["id"], "scores": scores[sample["id"]]}), file=file)
        print(f"{sample['id']}: {len(scores)} of {len(samples)}", file=sys.stderr)
    return scores


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--samples", required=True)
    parser.add_argument("--records", required=True)
    parser.add_argument("-o", "--output", required=True)
    parser.add_argument("--budgets", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--protocol", choices=OF_SAMPLE, default="question-aware")
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.disable_progress_bar()
    measured, tokens = by_winnow(arguments.records)
    with open(arguments.samples) as file:
        samples = [sample for sample in map(json.loads, file) if sample["id"] in measured]
    reader = Reader(arguments.model)
    scores = measure(reader, checked(samples, measured, tokens, reader, max(arguments.budgets)), arguments)
    kinds = {sample["id"]: sample["labels"]["kind"] for sample in samples}
    both = [each for each in scores if scores[each]["full"] == 1 and measured[each]["full"] == 1]
    table("kvpress", {each: scores[each] for each in both}, kinds, arguments.budgets)
    table("winnow", {each: measured[each] for each in both}, kinds, arguments.budgets)


main()
