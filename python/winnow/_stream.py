# SPDX-License-Identifier: Apache-2.0
"""Answers as text, streamed while they are generated."""

import codecs
import dataclasses
from collections.abc import Iterator, Sequence

from winnow import _core


@dataclasses.dataclass(frozen=True)
class Token:
    """A generated token. `text` may be empty, while a character or a possible stop text is incomplete."""

    answer: int
    """Index of the answer's cache."""
    id: int | None
    """None for text that was held back until the answer ended."""
    text: str
    logprob: float | None
    """Natural logarithm of its probability under the model's plain softmax."""
    top: list[tuple[int, float]]
    """The `logprobs` most probable tokens with their log probabilities."""


@dataclasses.dataclass(frozen=True)
class Answer:
    """An answer that has ended."""

    text: str
    tokens: list[int]
    finish: str
    """'stop', 'length' or 'interrupted'."""


class Stream(Iterator[Token]):
    """Iterates over the tokens of all answers. The session is busy until the stream has ended or is closed."""

    def __init__(self, stream: _core.Stream, count: int) -> None:
        self._stream = stream
        self._decoders = [codecs.getincrementaldecoder("utf-8")("replace") for _ in range(count)]

    def __next__(self) -> Token:
        delta = self._stream.next()
        if delta is None:
            return self._unfinished()
        answer, token, logprob, top, data = delta
        return Token(answer, token, self._decoders[answer].decode(data), logprob, top)

    def _unfinished(self) -> Token:
        """Returns an incomplete character at the end of an answer."""
        for answer, decoder in enumerate(self._decoders):
            if text := decoder.decode(b"", final=True):
                return Token(answer, None, text, None, [])
        raise StopIteration

    def close(self) -> None:
        """Ends all answers early. Their caches can then be used again."""
        self._stream.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def answers(self) -> list[Answer]:
        """Generates the rest. Returns the answers, one for each cache."""
        while self._stream.next() is not None:
            pass
        return [
            Answer(text.decode("utf-8", "replace"), tokens, finish) for text, tokens, finish in self._stream.answers()
        ]


def generate(
    caches: _core.Cache | Sequence[_core.Cache],
    question: str | None = None,
    *,
    max_tokens: int = 256,
    min_tokens: int = 0,
    temperature: float = 0.0,
    top_k: int = 40,
    top_p: float = 0.95,
    min_p: float = 0.05,
    repeat_penalty: float = 1.0,
    seed: int = 0,
    stop: Sequence[str] = (),
    logprobs: int = 0,
    grammar: str = "",
) -> Stream:
    """Generates answers from one cache, or from several in one batch; batching does not change an answer.

    `question` is read first, as by Session.extend(). Afterwards the caches have seen the question and the answer,
    except the answer's last token: clone() a cache to ask it independent questions. A temperature of 0 is greedy.
    `grammar` is llama.cpp's GBNF. Raises UsageError if a cache has nothing to answer from.
    """
    all_caches = [caches] if isinstance(caches, _core.Cache) else list(caches)
    stream = _core.Stream(
        all_caches,
        question,
        max_tokens,
        min_tokens,
        temperature,
        top_k,
        top_p,
        min_p,
        repeat_penalty,
        seed,
        list(stop),
        logprobs,
        grammar,
    )
    return Stream(stream, len(all_caches))


def answer(cache: _core.Cache, question: str | None = None, **options: object) -> Answer:
    """Generates the whole answer of one cache, with the options of generate()."""
    return generate(cache, question, **options).answers()[0]
