# SPDX-License-Identifier: Apache-2.0
"""Compares entries that methods keep of a text, and their answers. Arguments: MODEL TEXT QUESTION PICTURE."""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy

import winnow

model, text, question, picture = sys.argv[1:]
session = winnow.Session(winnow.Model.load(model))
specs = ["streaming-llm", "h2o", "tova", "snapkv", "ada-snapkv", "chunk(snapkv)"]
[caches] = session.prefill(open(text).read(), [question], [(spec, "40%") for spec in specs])

figure, axes = plt.subplots(len(specs), 1, figsize=(9, 1.1 * len(specs)), sharex=True, layout="constrained")
for spec, cache, axis in zip(specs, caches, axes):
    heads = [head for layer in cache.kept() for head in layer]
    share = sum(numpy.bincount(head, minlength=cache.tokens_seen) for head in heads) / len(heads)
    axis.fill_between(numpy.arange(len(share)), share, step="mid")
    axis.set_title(spec, fontsize=8, loc="left")
    axis.set_ylim(0, 1)
figure.supxlabel("position in the prompt")
figure.supylabel("share of heads that keep it")
figure.savefig(picture)

for spec, answer in zip(specs, winnow.generate(caches, max_tokens=40).answers()):
    print(f"{spec}: {answer.text.strip()}")
