# SPDX-License-Identifier: Apache-2.0
"""Questions about a text, with the interface of kvpress's pipeline."""

import bisect
import numbers
import os
import warnings
from collections.abc import Sequence

from winnow import _core
from winnow._stream import generate


class Pipeline:
    """Reads a text, compresses it before any question is seen, and answers each question independently."""

    def __init__(self, session: _core.Session) -> None:
        self.session = session

    def __call__(
        self,
        context: str,
        question: str | None = None,
        *,
        questions: Sequence[str] | None = None,
        press: str | None = None,
        compression_ratio: float | None = None,
        budget: int | str | None = None,
        kv_type: str | None = None,
        answer_prefix: str = "",
        max_new_tokens: int = 50,
        max_context_length: int | None = None,
        system: str = "",
    ) -> dict[str, str | list[str]]:
        """Returns {"answer": …} for `question`, or {"answers": […]} for `questions`.

        press: a spec, or None for the full cache. compression_ratio: share of the text's entries that are evicted, from
        0 to below 1, as in kvpress; or budget: the entries that stay, as in all of winnow. answer_prefix: beginning of
        each answer, not returned. max_context_length: number of the context's first tokens that are read.
        Raises UsageError.
        """
        asked = _questions(question, questions)
        cache = _cache(press, _budget(press, compression_ratio, budget), kv_type)
        rows = self.session.prefill(
            self._cut(context, max_context_length), asked, cache, protocol="question-agnostic", system=system
        )
        caches = [cache for [cache] in rows]
        if answer_prefix:
            prefix = self.session.model.tokenize(answer_prefix)
            for cache in caches:
                self.session.extend_tokens(cache, prefix)
        with generate(caches, max_tokens=max_new_tokens) as stream:
            answers = [answer.text for answer in stream.answers()]
        return {"answer": answers[0]} if questions is None else {"answers": answers}

    def _cut(self, context: str, most: int | None) -> str:
        if most is None:
            return context
        if most < 1:
            raise _core.UsageError(f"max_context_length is {most}: give at least 1")
        count = self.session.model.tokenize
        if (tokens := len(count(context))) <= most:
            return context
        warnings.warn(f"the context has {tokens} tokens, of which only the first {most} are read", stacklevel=3)
        # not the text of the tokens, which may begin with a space that the context lacks
        return context[: bisect.bisect_right(range(len(context)), most, key=lambda n: len(count(context[:n]))) - 1]


def _questions(question: str | None, questions: Sequence[str] | None) -> list[str]:
    if (question is None) == (questions is None):
        raise _core.UsageError("give either a question or questions")
    if isinstance(questions, str):
        raise _core.UsageError("questions is a string: give a list, or use question")
    return [question] if questions is None else list(questions)


def _budget(press: str | None, compression_ratio: float | None, budget: int | str | None) -> int | str | None:
    if compression_ratio is None:
        return budget
    if budget is not None:
        raise _core.UsageError("give either compression_ratio (the share to evict) or budget (the entries to keep)")
    if not isinstance(compression_ratio, numbers.Real) or not 0 <= compression_ratio < 1:
        raise _core.UsageError(f"compression_ratio is {compression_ratio!r}: give a number from 0 to below 1")
    if compression_ratio == 0 and press in (None, "full"):
        return None
    return f"{100 * (1 - float(compression_ratio))}%"


def _cache(press: str | None, budget: int | str | None, kv_type: str | None) -> _core.CacheOptions:
    if press is not None and not isinstance(press, str):
        raise _core.UsageError(f"{press!r} is not a press: give a spec, such as 'snapkv'")
    if press in (None, "full") and budget is not None:
        raise _core.UsageError("the full cache evicts nothing: give a press, such as 'snapkv'")
    return _core.CacheOptions("full" if press is None else press, budget, kv_type)


def pipeline(model: str | os.PathLike | _core.Model, *, threads: int = 0, calibration: str = "") -> Pipeline:
    """Creates a pipeline of a GGUF file or a loaded model.

    threads: 0 is all cores. calibration: a file of `winnow calibrate`.
    """
    if not isinstance(model, _core.Model):
        model = _core.Model.load(os.fspath(model))
    return Pipeline(_core.Session(model, threads=threads, calibration=calibration))
