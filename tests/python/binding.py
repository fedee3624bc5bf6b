# SPDX-License-Identifier: Apache-2.0
"""Calls of the package with arbitrary arguments, which bytes choose: random bytes in fuzz_test.py, atheris's in
binding_fuzz.py."""

import math
import os
import pathlib

import numpy

import winnow

# Errors that an invalid argument may raise. Not SystemError or RuntimeError, which a binding raises if it does not
# handle a case.
REFUSED = (winnow.Error, TypeError, ValueError, OverflowError, IndexError, AttributeError)

SPECS = ["full", "snapkv", "ada(snapkv:window=8):floor=0", "chunk(snapkv)", "streaming-llm", "h2o", "ems", "quest", "knorm", "kvzip", "fuzzed", "ada(fuzzed)"]
STRANGE = [
    None, True, False, 0, 1, -1, 7, 2**31, -(2**31) - 1, 2**63, 2**100, 0.5, -0.0, math.nan, math.inf, "", "word", "10%", "150%", "0%", "64MiB", "-3", "q8_0",
    "\ud800", "\0", "snapkv:window=0", "ada(", "ada(ada(snapkv))", b"", b"\xff\xfe", [], [[]], {}, (), ("snapkv", 8), ("snapkv", "10%", "q4_0"), [None], object(), len,
    numpy.zeros(0, numpy.int32), numpy.zeros((2, 2), numpy.int32), numpy.full(3, -1), numpy.full(3, 2**40), numpy.array(["a"]), numpy.arange(12)[::3], numpy.array(5),
    numpy.full(4, math.nan), numpy.zeros(5, complex),
]  # fmt: skip


class Choices:
    """Reads bytes as choices. After the last byte, every choice is the first."""

    def __init__(self, data: bytes):
        self.data = data
        self.at = 0

    def below(self, n: int) -> int:
        value = self.data[self.at] if self.at < len(self.data) else 0
        self.at += 1
        return value % n

    def of(self, values):
        return values[self.below(len(values))]

    def any(self, *usual):
        """One of the usual values three times of four, otherwise a strange one."""
        return self.of(STRANGE) if self.below(4) == 3 else self.of(usual)


class Fuzzed:
    """A method whose scores are chosen by bytes."""

    answer = None

    def __init__(self, option=0):
        pass

    def score(self, layer):
        shape = (layer.kv_heads, layer.tokens)
        return {0: lambda: numpy.zeros(shape), 1: lambda: numpy.ones(shape, numpy.float32), 2: lambda: numpy.zeros((1, 1)), 3: lambda: numpy.full(shape, math.nan)}.get(
            Fuzzed.answer, lambda: STRANGE[Fuzzed.answer % len(STRANGE)]
        )()


winnow.method("fuzzed")(Fuzzed)


class Binding:
    """A model, its session, and the results of earlier calls."""

    def __init__(self, model_file: str, folder: pathlib.Path):
        self.model_file = model_file
        os.chdir(folder)  # some strange arguments are names of files
        self.model = winnow.Model.load(model_file)
        self.session = winnow.Session(self.model, threads=1)
        self.store = winnow.DocumentStore("store")
        self.closed = winnow.Session(self.model, threads=1)
        [self.dead] = self.closed.read("some words", "full")
        self.closed.close()
        [self.read] = self.session.read("some words", "full")
        self.expected = self.logits()
        self.begin()

    def begin(self):
        """Drops the results of earlier calls."""
        self.caches = [self.read.clone(), self.dead]

    def logits(self):
        [[cache]] = self.session.prefill("some words", ["more"], "full")
        return cache.logits.copy()

    def run(self, data: bytes) -> None:
        """Makes up to eight calls, then checks that the session works as before."""
        choices = Choices(data)
        self.begin()
        for _ in range(1 + choices.below(8)):
            call = choices.of(CALLS)
            try:
                call(self, choices)
            except REFUSED as error:
                assert str(error), f"{call.__name__}: {type(error).__name__} without a sentence"
        assert (self.logits() == self.expected).all()


def load(b, c):
    winnow.Model.load(c.any(b.model_file, "/", "none.gguf"), rope_freq_base=c.any(0.0, 1e4), rope_scaling=c.any("", "none", "linear:2", "yarn:x"))


def tokens(b, c):
    b.model.tokenize(c.any("some words"))
    b.model.pieces(c.any([1, 2, 3], numpy.array([1, 2], numpy.int32)))
    b.model.ends(c.any(0, 5))
    b.model.prompt(c.any("some words"), c.any("", "a question"), system=c.any(""), format=c.any("chat", "raw"))
    b.model.chat(c.any([("user", "hello")], [("user",)], [(1, 2)]), text=c.any("", "text"))


def open_session(b, c):
    winnow.Session(c.any(b.model), threads=c.any(1), precision=c.any("auto", "f32"), pack=c.any("auto"), chunk=c.any(512, 7), calibration=c.any(""), prefix_memory=c.any(None, 0, 1 << 20)).close()


def options(b, c):
    winnow.CacheOptions(c.any(*SPECS), c.any(8, "40%"), c.any("f16", "q8_0"))


def caches(c):
    return c.any("full", (c.any(*SPECS), c.any(8, 16, "40%", None)), [(c.any(*SPECS), c.any(8, "20%"), c.any("f16", "q8_0"))])


def read(b, c):
    Fuzzed.answer = c.below(60)
    b.caches += b.session.read(c.any("some words to read " * 4), caches(c), system=c.any(""), format=c.any("chat", "raw"))


def read_tokens(b, c):
    Fuzzed.answer = c.below(60)
    b.caches += b.session.read_tokens(c.any([1, 2, 3, 4], numpy.arange(40, dtype=numpy.int64) % 30), caches(c))


def prefill(b, c):
    Fuzzed.answer = c.below(60)
    questions = c.any(["who?"], [], ["who?", ""])
    for row in b.session.prefill(c.any("some words to read " * 4), questions, caches(c), protocol=c.any("question-aware", "question-agnostic")):
        b.caches += row


def look(b, c):
    cache = c.of(b.caches)
    for head in cache.kept()[0]:
        assert head.dtype == numpy.int32 and not head.flags.writeable
    cache.stats(), cache.bytes_held, cache.tokens, cache.logits, cache.options, repr(cache)
    b.caches.append(cache.clone())


def extend(b, c):
    b.session.extend(c.any(c.of(b.caches)), c.any("and more"))
    b.session.extend_tokens(c.any(c.of(b.caches)), c.any([1, 2]))


def step(b, c):
    b.session.step(c.any([c.of(b.caches)], [c.of(b.caches), c.of(b.caches)]), c.any([1], [1, 2], numpy.array([3], numpy.int16)))


def generate(b, c):
    stream = winnow.generate(
        c.any(c.of(b.caches), [c.of(b.caches)]), c.any(None, "what?"), max_tokens=c.any(2, 0), temperature=c.any(0.0, 1.0), top_k=c.any(0, 3), top_p=c.any(1.0), seed=c.any(0),
        stop=c.any((), ["a"]), logprobs=c.any(0, 2), grammar=c.any("", 'root ::= "a"', "root ::= ("),
    )  # fmt: skip
    for count, _ in enumerate(stream):
        if count == 3:
            break


def files(b, c):
    path = c.any("cache", ".")
    b.session.save(path, c.any(c.of(b.caches)))
    b.caches.append(b.session.load(c.any(path, b.model_file)))


def documents(b, c):
    b.store.add(c.any(b.session), c.any("one", "two"), c.any("some words of a document"), tags=c.any([]), cache=c.any("full", ("snapkv", 8)))
    document = b.store.open(c.any("one", "none"), c.any(b.session))
    cache, _ = winnow.ask(c.any(b.session), c.any([document], [document, document]), c.any("what?"), method=c.any("samkv", "recompute", "reuse"))
    b.caches.append(cache)
    b.store.export_to(c.any("one"), c.any("exported"))
    b.store.import_from(c.any("exported"), c.any("two", ""))
    b.store.remove(c.any(["two"], ["none"]))
    b.store.gc(c.any(10**9, 1))


def unknown(b, c):
    winnow.describe_method(c.any(*SPECS))
    winnow.canonical(c.any(*SPECS))
    winnow.method(c.any("fuzzed", "Not a name"))(c.any(Fuzzed))
    winnow.method(c.any("with-an-option"), option=winnow.Option(c.any(2), c.any(1), c.any(8)))(c.any(Fuzzed))


def closed(b, c):
    b.closed.read(c.any("some words"), "full")


CALLS = [load, tokens, open_session, options, read, read_tokens, prefill, look, extend, step, generate, files, documents, unknown, closed]
