# SPDX-License-Identifier: Apache-2.0
"""A method in ten lines: KeyDiff, compared with winnow's own. Arguments: MODEL TEXT, which are files."""

import sys

import numpy

import winnow


@winnow.method("my-keydiff")
class KeyDiff:
    """Keeps the keys that differ most from the mean direction of all keys."""

    def score(self, layer):
        keys = layer.keys.astype(numpy.float64)  # [KV heads, tokens, dimensions]
        keys /= numpy.linalg.norm(keys, axis=2, keepdims=True)
        return -numpy.einsum("htd,hd->ht", keys, keys.mean(axis=1))


model, text = sys.argv[1:]
session = winnow.Session(winnow.Model.load(model))
specs = ["my-keydiff", "keydiff", "ada(my-keydiff)", "chunk(my-keydiff)"]
caches = session.read(open(text).read(), [(spec, "40%") for spec in specs])
mine = [head for layer in caches[0].kept() for head in layer]
for spec, cache in zip(specs, caches):
    heads = [head for layer in cache.kept() for head in layer]
    shared = numpy.mean([numpy.isin(a, b).mean() for a, b in zip(heads, mine)])
    print(f"{spec:20} keeps {cache.stats().entries_per_head_mean:.0f} entries per head, {100 * shared:.0f} % as my-keydiff")
