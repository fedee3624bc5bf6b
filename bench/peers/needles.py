# SPDX-License-Identifier: Apache-2.0
"""Hidden answers after compression by kvpress, beside winnow's on the same prompts.

needles.py --model MODEL.gguf --samples SAMPLES.jsonl --records FOLDER [--budgets 64 128 256] [--threads 2]

SAMPLES.jsonl is what `winnow eval needles/one --raw --print-samples` prints, and FOLDER has the records that winnow measured of it, which are
in the table, too. The question is seen: a press compresses the whole prompt. PyTorch runs the same network in f32. It reads a prompt once for
all presses, and goes on from what each has kept. The table has the share of the full cache's answers that are found, in percent: the mean over
the kinds of answers.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import defaultdict
from statistics import mean

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

import gguf
import torch
import transformers
from kvpress import ChunkKVPress, CompactorPress, FinchPress, SnapKVPress
from kvpress.presses.base_press import BasePress
from transformers import DynamicCache

import weights


def finch(share):
    """With positions as they were."""
    return FinchPress(share, rerotate_keys=False)


PRESSES = {
    "SnapKV": SnapKVPress,
    "SnapKV, window 8, kernel 31": lambda share: SnapKVPress(share, window_size=8, kernel_size=31),
    "ChunkKV(SnapKV)": lambda share: ChunkKVPress(SnapKVPress(share)),
    "ChunkKV(SnapKV, window 8)": lambda share: ChunkKVPress(SnapKVPress(share, window_size=8)),
    "ChunkKV(SnapKV, window 8), chunks of 10": lambda share: ChunkKVPress(SnapKVPress(share, window_size=8), 10),
    "FINCH": finch,
    "Compactor": CompactorPress,
}


class Recorder(BasePress):
    """Lets presses compress each layer and notes what they keep, but leaves the cache whole."""

    def __init__(self, presses):
        self.presses = presses
        self.kept = {name: [] for name in presses}

    def post_init_from_model(self, model):
        for press in self.presses.values():
            press.post_init_from_model(model)

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        for name, press in self.presses.items():
            self.kept[name].append(press.compress(module, hidden_states, keys, values, attentions, kwargs))
        self.kept.setdefault("full", []).append((keys, values))
        return keys, values


class Reader:
    """One model, its tokenizer, and the tokens that end an answer."""

    def __init__(self, path):
        with tempfile.TemporaryDirectory() as folder:
            copy = os.path.join(folder, "f32.gguf")
            weights.write_f32(path, copy)
            self.model, self.tokenizer = weights.network(copy), weights.tokenizer(copy)
        self.end = gguf.GGUFReader(path).fields["tokenizer.ggml.eos_token_id"].contents()

    def tokens(self, text):
        return self.tokenizer.encode(text).ids

    @torch.no_grad()
    def read(self, ids, presses):
        """What each press keeps of each layer, and the first token of the answer."""
        recorder = Recorder(presses)
        with recorder(self.model):
            out = self.model(torch.tensor([ids]), past_key_values=DynamicCache(), logits_to_keep=1)
        return recorder.kept, out.logits[0, -1].argmax().item()

    @torch.no_grad()
    def answer(self, layers, token, position, count):
        """`count` tokens, greedily, after what was kept."""
        cache = DynamicCache()
        for layer, (keys, values) in enumerate(layers):
            cache.update(keys, values, layer)
        out = [token]
        while len(out) < count and out[-1] != self.end:
            at = torch.tensor([position + len(out) - 1])
            logits = self.model(torch.tensor([[out[-1]]]), past_key_values=cache, cache_position=at, position_ids=at[None]).logits
            out.append(logits[0, -1].argmax().item())
        return self.tokenizer.decode(out)


def found(answer, references):
    return mean(reference.lower() in answer.lower() for reference in references)


def of_sample(reader, sample, budgets):
    """{(press, budget): score}; of the full cache, (full, None)."""
    text, question = reader.tokens(sample["text"]), reader.tokens(sample["question"])
    ids = text + question
    presses = {(name, budget): make(1 - budget / len(ids)) for name, make in PRESSES.items() for budget in budgets}
    for press in presses.values():
        if isinstance(press, FinchPress):
            press.window_size = len(question)
    kept, first = reader.read(ids, presses)
    kept[("full", None)] = kept.pop("full")
    answers = {key: reader.answer(layers, first, len(ids), sample["max_tokens"]) for key, layers in kept.items()}
    return len(ids), {key: found(answer, sample["outputs"]) for key, answer in answers.items()}


def by_winnow(folder):
    """{id: {(spec, budget): score}}, and {id: tokens}."""
    scores, tokens = defaultdict(dict), {}
    with open(os.path.join(folder, "records.jsonl")) as file:
        for record in map(json.loads, file):
            budget = record.get("budget")
            scores[record["id"]][record["spec"], budget and int(budget)] = record["score"]
            tokens[record["id"]] = record["prompt_tokens"]
    return scores, tokens


def shares(scores, kinds):
    """{method: {budget: percent}}: the means over kinds of samples that the full cache finds."""
    of = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for sample, all_scores in scores.items():
        for (method, budget), score in all_scores.items():
            if all_scores["full", None] and method != "full":
                of[method][budget][kinds[sample]].append(score)
    return {m: {b: 100 * mean(mean(s) for s in by_kind.values()) for b, by_kind in budgets.items()} for m, budgets in of.items()}


def table(title, scores, kinds, budgets):
    known = sum(all_scores["full", None] == 1 for all_scores in scores.values())
    print(f"| {title}: {known} of {len(scores)} found by the full cache | " + " | ".join(map(str, budgets)) + " |")
    print("|---|" + "---:|" * len(budgets))
    for method, of in sorted(shares(scores, kinds).items(), key=lambda item: -sum(item[1].values())):
        print(f"| {method} | " + " | ".join(f"{of[b]:.0f}" if b in of else "" for b in budgets) + " |")
    print()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True)
    parser.add_argument("--samples", required=True)
    parser.add_argument("--records", required=True)
    parser.add_argument("--budgets", type=int, nargs="+", default=[64, 128, 256])
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    transformers.utils.logging.disable_progress_bar()
    measured, tokens = by_winnow(arguments.records)
    with open(arguments.samples) as file:
        samples = [sample for sample in map(json.loads, file) if sample["id"] in measured]
    reader = Reader(arguments.model)
    scores = {}
    for sample in samples:
        n, scores[sample["id"]] = of_sample(reader, sample, arguments.budgets)
        if n != tokens[sample["id"]]:
            raise SystemExit(f"{sample['id']} has {n} tokens here and {tokens[sample['id']]} in winnow")
        print(f"{sample['id']}: {len(scores)} of {len(samples)}", file=sys.stderr)
    kinds = {sample["id"]: sample["labels"]["kind"] for sample in samples}
    table("kvpress", scores, kinds, arguments.budgets)
    table("winnow", {each: measured[each] for each in scores}, kinds, arguments.budgets)


main()
