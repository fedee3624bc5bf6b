# SPDX-License-Identifier: Apache-2.0
"""Entries that kvpress keeps of a prompt, for many presses at once."""

import os
import tempfile

import torch
from kvpress import FinchPress
from kvpress.presses.base_press import BasePress
from transformers import DynamicCache

import weights


def network(path):
    """The model of a GGUF file in f32."""
    with tempfile.TemporaryDirectory() as folder:
        path_f32 = os.path.join(folder, "f32.gguf")
        weights.write_f32(path, path_f32)
        return weights.network(path_f32)


class Recorder(BasePress):
    """Runs presses on each layer and records the entries that they keep, but leaves the cache whole."""

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


def cache_of(layers):
    """A separate cache of the keys and values that a press kept in each layer."""
    out = DynamicCache()
    for layer, (keys, values) in enumerate(layers):
        out.update(keys, values, layer)
    return out


@torch.no_grad()
def read(model, ids, presses):
    """The entries that each press keeps of a prompt, the full cache as {full: …}, and the logits after the prompt,
    [vocabulary]."""
    recorder = Recorder(presses)
    with recorder(model):
        out = model(torch.tensor([ids]), past_key_values=DynamicCache(), logits_to_keep=1)
    return {key: cache_of(layers) for key, layers in recorder.kept.items()}, out.logits[0, -1]


def finch(share, question):
    """FinchPress with a given window, which it would otherwise find by a token between text and question."""
    press = FinchPress(share, rerotate_keys=False)
    press.window_size = question
    return press


def share(budget, tokens):
    """Presses round the number of kept entries down; half an entry more gives exactly the budget."""
    return 1 - (budget + 0.5) / tokens
