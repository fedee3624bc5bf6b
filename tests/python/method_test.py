# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import winnow


@winnow.method("my-keydiff")
class KeyDiff:
    """Minus the cosine of each key with the mean direction."""

    def score(self, layer):
        keys = layer.keys.astype(np.float64)
        mean = (keys / np.linalg.norm(keys, axis=2, keepdims=True)).mean(axis=1, keepdims=True)
        return -(keys * mean).sum(axis=2) / np.linalg.norm(keys, axis=2) / np.linalg.norm(mean, axis=2)


@winnow.method("my-window", window=winnow.Option(8, 1, 64, "last queries"))
class Window:
    def __init__(self, window):
        self.observe = self.recent = window

    def score(self, layer):
        return layer.attention.reshape(layer.kv_heads, -1, layer.tokens).mean(axis=1)


@winnow.method("my-mistake", kind=winnow.Option(0, 0, 6))
class Mistake:
    signed = False

    def __init__(self, kind):
        self.kind = kind

    def score(self, layer):
        shape = (layer.kv_heads, layer.tokens)
        Mistake.layer = layer
        assert not any(array.flags.writeable or array.flags.owndata for array in (layer.keys, layer.values))
        wrong = [np.zeros((1, 2)), np.full(shape, np.nan), np.full(shape, "a"), None, np.full(shape, -1)]
        if self.kind < len(wrong):
            return wrong[self.kind]
        return layer.attention if self.kind == 5 else 1 / 0


def kept(session, text, spec, budget=40):
    [[cache]] = session.prefill(text, ["and then"], (spec, budget))
    return [[head.tolist() for head in layer] for layer in cache.kept()]


@pytest.mark.parametrize("mine, built_in", [
    ("my-keydiff", "keydiff"),
    ("ada(my-keydiff)", "ada(keydiff)"),
    ("my-window:window=16", "snapkv:window=16,kernel=1"),
    ("ada(my-window)", "ada(snapkv:window=8,kernel=1)"),
    ("chunk(my-window)", "chunk(snapkv:window=8,kernel=1)"),
])
def test_a_method_in_python_equals_the_built_in_one(session, text, mine, built_in):
    assert kept(session, text, mine) == kept(session, text, built_in)


def test_it_is_listed_with_its_options():
    mine = next(method for method in winnow.list_methods() if method.name == "my-window")
    assert [(option.name, option.value, option.effect) for option in mine.options][0] == ("window", "8", "last queries")


@pytest.mark.parametrize("kind, words", [
    (0, r"shape \(1, 2\)"), (1, "no numbers"), (2, "give numbers"), (3, "give numbers"), (4, "negative"), (5, "observe")])
def test_wrong_scores_are_an_exception(session, text, kind, words):
    with pytest.raises(winnow.UsageError, match=words):
        kept(session, text, f"my-mistake:kind={kind}")
    assert kept(session, text, "knorm")


def test_what_score_raises_comes_through(session, text):
    with pytest.raises(ZeroDivisionError):
        kept(session, text, "my-mistake:kind=6")
    with pytest.raises(winnow.UsageError, match="returned"):
        Mistake.layer.keys


@pytest.mark.parametrize("name", ["snapkv", "My", "", "my-keydiff"])
def test_names_are_checked(name):
    with pytest.raises(winnow.UsageError, match="name"):
        winnow.method(name)(type("Other", (KeyDiff,), {}))


def test_a_class_that_is_defined_again_takes_the_place_of_the_former(session, text):
    def define(sign):
        @winnow.method("my-cell")
        class Cell:
            def score(self, layer):
                return sign * np.linalg.norm(layer.keys, axis=2)

    define(1)
    long = kept(session, text, "my-cell")
    define(-1)
    assert kept(session, text, "my-cell") == kept(session, text, "knorm") != long


def test_a_class_that_cannot_be_made_is_refused():
    with pytest.raises(TypeError, match="window"):
        winnow.method("my-other-window")(Window)
    assert winnow.list_methods()


def test_a_class_without_score_is_refused():
    with pytest.raises(winnow.UsageError, match="score"):
        winnow.method("my-nothing")(object)
