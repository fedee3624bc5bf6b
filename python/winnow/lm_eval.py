# SPDX-License-Identifier: Apache-2.0
"""winnow as a model of lm-eval.

Usage: `python -m winnow.lm_eval run --model winnow --model_args path=…,kv=…,budget=… --tasks …`.
"""

import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

import winnow


def _batches(items: list, size: int) -> Iterator[list]:
    for first in range(0, len(items), size):
        yield items[first : first + size]


def _log_softmax(logits: numpy.ndarray) -> numpy.ndarray:
    shifted = logits.astype(numpy.float64) - logits.max()
    return shifted - numpy.log(numpy.exp(shifted).sum())


class _Forced:
    """A continuation that is scored token by token (teacher forcing)."""

    def __init__(self, cache: winnow.Cache, tokens: list[int]) -> None:
        self.cache = cache
        self.tokens = tokens
        self.seen = 0
        self.logprob = 0.0
        self.greedy = True

    def score(self, logits: numpy.ndarray) -> None:
        token = self.tokens[self.seen]
        self.logprob += float(_log_softmax(logits)[token])
        self.greedy &= int(logits.argmax()) == token
        self.seen += 1


@register_model("winnow")
class Winnow(TemplateLM):
    """A GGUF model whose cache is compressed after a prompt has been read.

    path: the GGUF file. kv, budget, kv_type: as for `winnow run`; a budget alone means kv=auto. batch_size: number of
    prompts that are answered together. max_length: tokens of prompt and answer (default: the model's context); longer
    prompts lose their beginning.
    """

    def __init__(
        self,
        path: str,
        kv: str | None = None,
        budget: int | str | None = None,
        kv_type: str | None = None,
        threads: int = 0,
        batch_size: int | str = 8,
        max_length: int | None = None,
        max_gen_toks: int = 256,
        calibration: str = "",
        **_: Any,
    ) -> None:
        super().__init__()
        self._model = winnow.Model.load(os.fspath(path))
        self._session = winnow.Session(self._model, threads=int(threads), calibration=calibration)
        self._cache = winnow.CacheOptions(kv, budget, kv_type)
        self._batch = 8 if batch_size == "auto" else int(batch_size)
        self._max_length = max_length or self._model.info.context
        self._max_gen_toks = max_gen_toks
        self._end = next(token for token in range(self._model.info.n_vocab) if self._model.ends(token))

    @property
    def eot_token_id(self) -> int:
        return self._end

    @property
    def prefix_token_id(self) -> int:
        """The token before an empty context: BOS if the model has one."""
        with_bos, plain = self.tok_encode("a"), self._model.tokenize("a")
        return with_bos[0] if len(with_bos) > len(plain) else self._end

    @property
    def tokenizer_name(self) -> str:
        return self._model.info.name

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        if not string:
            return []
        if add_special_tokens is False:
            return self._model.tokenize(string).tolist()
        return self._model.prompt(string, format="raw")[0].tolist()

    def apply_chat_template(self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True) -> str:
        raise winnow.UsageError(
            "prompts here are plain texts: for chat templates, start `winnow serve` "
            "and use lm-eval's local-chat-completions"
        )

    def _loglikelihood_tokens(
        self, requests: list[tuple[tuple[str, str], list[int], list[int]]], **_: Any
    ) -> list[tuple[float, bool]]:
        out = []
        for batch in _batches(requests, self._batch):
            forced = []
            for _pair, context, continuation in batch:
                context = context[-max(1, self._max_length - len(continuation)) :]
                [cache] = self._session.read_tokens(context, self._cache)
                forced.append(_Forced(cache, continuation))
                forced[-1].score(cache.logits)
            self._force(forced)
            out += [(one.logprob, one.greedy) for one in forced]
        for (pair, _context, _continuation), result in zip(requests, out):
            if pair is not None:
                self.cache_hook.add_partial("loglikelihood", pair, result)
        return out

    def _force(self, forced: list[_Forced]) -> None:
        """Appends one token of each unfinished continuation per step, in one batch."""
        while going := [one for one in forced if one.seen < len(one.tokens)]:
            rows = self._session.step([one.cache for one in going], [one.tokens[one.seen - 1] for one in going])
            for one, logits in zip(going, rows):
                one.score(logits)

    def loglikelihood_rolling(self, requests: Iterable[Any], **_: Any) -> list[float]:
        out = []
        for request in requests:
            (text,) = request.args
            windows = get_rolling_token_windows(
                token_list=self._model.tokenize(text).tolist(),
                prefix_token=self.prefix_token_id,
                max_seq_len=self._max_length - 1,
                context_len=1,
            )
            parts = [(None, *make_disjoint_window(window)) for window in windows]
            out.append(sum(logprob for logprob, _greedy in self._loglikelihood_tokens(parts)))
        return out

    def generate_until(self, requests: list[Any], **_: Any) -> list[str]:
        out = []
        for batch in _batches(requests, self._batch):
            caches, limits = [], []
            for request in batch:
                context, options = request.args
                limits.append(options)
                most = int(options.get("max_gen_toks", self._max_gen_toks))
                tokens = self.tok_encode(context)[-max(1, self._max_length - most) :]
                caches += self._session.read_tokens(tokens, self._cache)
            out += self._answers(caches, limits)
        for request, answer in zip(requests, out):
            self.cache_hook.add_partial("generate_until", request.args, answer)
        return out

    def _answers(self, caches: list[winnow.Cache], limits: list[dict[str, Any]]) -> list[str]:
        """Generates answers; those with equal options in one batch."""
        out = [""] * len(caches)
        left = list(range(len(caches)))
        while left:
            options = limits[left[0]]
            alike = [i for i in left if limits[i] == options]
            left = [i for i in left if limits[i] != options]
            until = options.get("until") or []
            stream = winnow.generate(
                [caches[i] for i in alike],
                max_tokens=int(options.get("max_gen_toks", self._max_gen_toks)),
                temperature=float(options.get("temperature", 0)) if options.get("do_sample") else 0.0,
                stop=[until] if isinstance(until, str) else [text for text in until if text],
            )
            for i, answer in zip(alike, stream.answers()):
                out[i] = answer.text
        return out


if __name__ == "__main__":
    from lm_eval.__main__ import cli_evaluate

    cli_evaluate()
