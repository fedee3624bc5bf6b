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
    (0, r"shape \(1, 2\)"), (1, "are NaN"), (2, "give numbers"), (3, "give numbers"), (4, "negative"), (5, "observe")])
def test_wrong_scores_are_an_exception(session, text, kind, words):
    with pytest.raises(winnow.UsageError, match=words):
        kept(session, text, f"my-mistake:kind={kind}")
    assert kept(session, text, "knorm")


def test_what_score_raises_comes_through(session, text):
    with pytest.raises(ZeroDivisionError):
        kept(session, text, "my-mistake:kind=6")
    with pytest.raises(winnow.UsageError, match=r"until its score\(\) returns"):
        Mistake.layer.keys


@pytest.mark.parametrize("name", ["snapkv", "My", "", "my-keydiff"])
def test_names_are_checked(name):
    with pytest.raises(winnow.UsageError, match="name|is already a method called"):
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


@winnow.method("my-observers", last=winnow.Option(1000, 1, 65536))
class Observers:
    """Requests many observers. All scores are 0."""

    def __init__(self, last):
        self.observers = [f"query_rows:last={last}", "query_moments:first=0", "attention:last=0", "output_lengths",
                          "tiles:length=16,before=3", "replay:last=5"]

    def score(self, layer):
        Observers.seen = {name.split(":")[0]: layer.seen(name.split(":")[0]) for name in self.observers}
        Observers.keys, Observers.values = layer.keys, layer.values
        return np.zeros((layer.kv_heads, layer.tokens))


def softmax(x):
    x = np.exp(x - x.max(axis=-1, keepdims=True))
    return x / x.sum(axis=-1, keepdims=True)


def test_observers_are_asked_for_by_name(model, text):
    """Computes the results for the last layer a second time, from its queries, keys and values."""
    kept(winnow.Session(model, threads=2, precision="f32"), text, "my-observers")
    seen = Observers.seen
    queries = seen["query_rows"]["queries"].astype(np.float64)
    tokens, heads, dim = queries.shape
    group = heads // len(Observers.keys)
    keys, values = (np.repeat(array.astype(np.float64), group, axis=0) for array in (Observers.keys, Observers.values))
    products = np.einsum("ihd,hjd->hij", queries, keys)
    hidden = np.triu(np.ones((tokens, tokens)), 1) > 0
    attention = softmax(np.where(hidden, -np.inf, products / np.sqrt(dim)))
    np.testing.assert_allclose(seen["attention"], attention.sum(axis=1), rtol=1e-3, atol=1e-3)
    outputs = np.einsum("hij,hjd->ihd", attention, values)
    np.testing.assert_allclose(seen["query_rows"]["outputs"], outputs, rtol=1e-3, atol=1e-3)
    tiles = np.zeros((heads, tokens))
    for first in range(3, tokens, 16):
        tile = slice(first, min(first + 16, tokens))
        tiles[:, tile] = softmax(products[:, tile, tile]).sum(axis=1)
    np.testing.assert_allclose(seen["tiles"], tiles, rtol=1e-3, atol=1e-3)
    moments = seen["query_moments"]  # rotations do not change a query's length
    squares = np.trace(moments["covariance"], axis1=1, axis2=2) + (moments["mean"] ** 2).sum(axis=1)
    np.testing.assert_allclose(squares, (queries**2).sum(axis=2).mean(axis=0), rtol=1e-3)
    lengths = seen["output_lengths"]
    assert lengths["absolute"].shape == lengths["euclidean"].shape == seen["replay"].shape == (heads, tokens)
    assert (lengths["absolute"] >= lengths["euclidean"]).all() and (lengths["euclidean"] > 0).all()
    assert (seen["replay"] > 0).all() and (seen["replay"] <= 1).all()


@winnow.method("my-dapq", queries=winnow.Option(16, 1, 64))
class DapQ:
    def __init__(self, queries):
        self.observers = (f"replay:last={queries}",)

    def score(self, layer):
        return layer.seen("replay").reshape(layer.kv_heads, -1, layer.tokens).astype(np.float64).mean(axis=1)


def test_a_method_that_reads_again_equals_the_built_in_one(session, text):
    assert kept(session, text, "my-dapq:queries=5") == kept(session, text, "dapq:queries=5,recent=0,kernel=1")


@pytest.mark.parametrize("observers, words", [
    (["query_moment"], "unknown observer 'query_moment': .*query_moments.*replay"),
    (["tiles:size=3"], "tiles has no option 'size'"),
    (["replay:last=0"], "1 to 65536"),
    (["tiles", "tiles:length=3"], "tiles twice"),
    ("tiles", "a list of their names"),
    (3, "a list of their names"),
])
def test_observers_are_checked_when_a_class_is_registered(observers, words):
    with pytest.raises(winnow.UsageError, match=words):
        winnow.method("my-unknown")(type("Unknown", (KeyDiff,), {"observers": observers}))
    assert winnow.list_methods()


def test_what_is_not_observed_is_named(session, text):
    @winnow.method("my-unseen")
    class Unseen:
        observers = ["tiles", "query_rows"]

        def score(self, layer):
            return layer.seen("attention")

    with pytest.raises(winnow.UsageError, match="does not observe attention: .* tiles, query_rows"):
        kept(session, text, "my-unseen")


def test_predictions_need_a_calibration(session, text):
    @winnow.method("my-predictions")
    class Predictions:
        observers = ["predictions"]

        def score(self, layer):
            return layer.seen("predictions")

    with pytest.raises(winnow.UsageError, match="my-predictions needs a calibration"):
        kept(session, text, "my-predictions")
