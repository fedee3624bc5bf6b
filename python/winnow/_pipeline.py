# SPDX-License-Identifier: Apache-2.0
"""Questions about a text, called as kvpress's pipeline is."""

import os
from collections.abc import Sequence

from winnow import _core
from winnow._stream import generate


class Pipeline:
    """Reads a text, compresses it before any question is seen, and answers each question as if it were the only one."""

    def __init__(self, session: _core.Session) -> None:
        self.session = session

    def __call__(
        self,
        context: str,
        question: str | None = None,
        *,
        questions: Sequence[str] | None = None,
        press: str = "full",
        compression_ratio: float | None = None,
        budget: int | str | None = None,
        kv_type: str = "f16",
        max_new_tokens: int = 50,
        system: str = "",
    ) -> dict[str, str | list[str]]:
        """{"answer": …} for `question`, or {"answers": […]} for `questions`.

        press: a spec. compression_ratio: the share of the text's entries that goes, from 0 to below 1, as in kvpress;
        or budget: what stays, as everywhere in winnow. Raises UsageError.
        """
        if (question is None) == (questions is None):
            raise _core.UsageError("give either a question or questions")
        if compression_ratio is not None:
            if budget is not None:
                raise _core.UsageError("give either compression_ratio, which goes, or budget, which stays")
            if not 0 <= compression_ratio < 1:
                raise _core.UsageError(f"compression_ratio is {compression_ratio}: give a number from 0 to below 1")
            budget = f"{100 * (1 - compression_ratio):g}%"
        rows = self.session.prefill(
            context,
            [question] if questions is None else list(questions),
            _core.CacheOptions(press, budget, kv_type),
            protocol="question-agnostic",
            system=system,
        )
        with generate([cache for [cache] in rows], max_tokens=max_new_tokens) as stream:
            answers = [answer.text for answer in stream.answers()]
        return {"answer": answers[0]} if questions is None else {"answers": answers}


def pipeline(model: str | os.PathLike | _core.Model, *, threads: int = 0) -> Pipeline:
    """A pipeline of a GGUF file, or of a model that is loaded. threads: 0 is all cores."""
    if not isinstance(model, _core.Model):
        model = _core.Model.load(os.fspath(model))
    return Pipeline(_core.Session(model, threads=threads))
