# SPDX-License-Identifier: Apache-2.0
"""Compares the answers of compressed caches with the full cache's, by budget. Arguments: MODEL TEXT QUESTION."""

import sys

import numpy

import winnow


def log_softmax(logits):
    shifted = logits.astype(numpy.float64) - logits.max(axis=-1, keepdims=True)
    return shifted - numpy.log(numpy.exp(shifted).sum(axis=-1, keepdims=True))


model, text, question = sys.argv[1:]
session = winnow.Session(winnow.Model.load(model))
caches = [(spec, budget) for spec in ("streaming-llm", "snapkv:window=8", "h2o") for budget in ("10%", "20%", "40%")]
[[full, *compressed]] = session.prefill(open(text).read(), [question], ["full", *caches])

# The full cache's greedy answer is forced through all of them, in one batch.
token = int(full.logits.argmax())
distances = []
for _ in range(24):
    rows = log_softmax(session.step([full, *compressed], [token] * (1 + len(compressed))))
    distances.append((numpy.exp(rows[0]) * (rows[0] - rows[1:])).sum(axis=1))
    token = int(rows[0].argmax())

for (spec, budget), cache, distance in zip(caches, compressed, numpy.mean(distances, axis=0)):
    print(f"{spec:16} {budget:>4}  {cache.bytes_held / full.bytes_held:4.0%} of the bytes  KL {distance:.3f}")
