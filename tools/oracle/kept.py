# SPDX-License-Identifier: Apache-2.0
"""The positions that kvpress and that winnow keep of a text: [layer][KV head][sorted positions]."""

import json
import os
import subprocess
import tempfile

import torch
from kvpress.presses.base_press import BasePress
from transformers import DynamicCache


def survivors(keys, compressed):
    """The positions in `keys` of the rows of `compressed`, head by head. (Rotated keys of different positions
    differ.)"""
    heads = []
    for before, after in zip(keys[0].numpy(), compressed[0].numpy()):
        place = {row.tobytes(): j for j, row in enumerate(before)}
        heads.append(sorted(place[row.tobytes()] for row in after))
    return heads


def unmasked(keys, masked):
    """AdaKVPress removes nothing; it records (batch, head, position) of entries to hide from later queries."""
    kept = [set(range(keys.shape[2])) for _ in range(keys.shape[1])]
    for head, j in zip(masked[1].tolist(), masked[2].tolist()):
        kept[head].remove(j)
    return [sorted(head) for head in kept]


class Recorder(BasePress):
    """Runs every press on each layer's cache and records the kept entries, but leaves the cache whole, so one pass
    serves all presses."""

    def __init__(self, presses):
        self.presses = presses
        self.kept = {name: [] for name in presses}

    def compress(self, module, hidden_states, keys, values, attentions, kwargs):
        for name, press in self.presses.items():
            module.masked_key_indices = None
            compressed, _ = press.compress(module, hidden_states, keys, values, attentions, kwargs)
            masked = module.masked_key_indices
            self.kept[name].append(survivors(keys, compressed) if masked is None else unmasked(keys, masked))
        module.masked_key_indices = None
        return keys, values


def by_kvpress(model, ids, presses, attention):
    model.set_attn_implementation(attention)
    recorder = Recorder(presses)
    with torch.no_grad(), recorder(model):
        model.model(torch.tensor([ids]), past_key_values=DynamicCache())
    return recorder.kept


def by_winnow(program, model, text, spec, budget, threads):
    """The output of `winnow run --dump-kept`, with f32 throughout."""
    with tempfile.TemporaryDirectory() as folder:
        prompt, dump = os.path.join(folder, "text"), os.path.join(folder, "kept.json")
        with open(prompt, "wb") as file:
            file.write(text)
        options = ["--raw", "-n", "0", "--precision", "f32", "--kv-type", "f32", "--threads", str(threads), "-q"]
        subprocess.run(
            [program, "run", "-m", model, "-f", prompt, "--kv", spec, "--budget", str(budget), "--dump-kept", dump, *options],
            check=True,
            stdout=subprocess.DEVNULL,
        )
        with open(dump) as file:
            return json.load(file)


def overlap(a, b):
    """[layer][head] shares of entries in both sets, relative to the larger set."""
    return [[len(set(x) & set(y)) / max(len(x), len(y), 1) for x, y in zip(of_a, of_b)] for of_a, of_b in zip(a, b)]
