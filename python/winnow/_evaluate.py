# SPDX-License-Identifier: Apache-2.0
"""Evaluation of methods on tasks, as by `winnow eval`."""

import json
import os
import tempfile
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from winnow import _core

if TYPE_CHECKING:
    import pandas


def _list(one_or_more: object) -> list:
    return [one_or_more] if isinstance(one_or_more, (str, int, os.PathLike)) else list(one_or_more)


def evaluate(
    session: _core.Session,
    tasks: str | os.PathLike | Sequence[str],
    kv: str | Sequence[str],
    budgets: str | int | Sequence[str | int] = (),
    *,
    kv_types: str | Sequence[str] = "f16",
    protocols: str | Sequence[str] = "question-aware",
    output: str | os.PathLike | None = None,
    data: str | os.PathLike = "",
    limit: int = 0,
    lengths: int | Sequence[int] = (),
    shots: int = 0,
    seeds: int | Sequence[int] = 1,
    format: str | None = None,
    max_prompt: int = 0,
) -> list[dict[str, Any]]:
    """Measures every sample of every task by every protocol, with every method and budget.

    Returns a dictionary for each measurement.

    tasks: names of list_tasks(), or files of samples (FILE.jsonl). data: the folder with the tasks' files. limit:
    samples of each task; 0: all. output: a folder, as in `winnow eval -o`: its records are not measured again, and all
    of them are returned. Raises Error.
    """
    with tempfile.TemporaryDirectory() as folder:
        lines = _core.evaluate(
            session,
            [os.fspath(task) for task in _list(tasks)],
            _list(kv),
            [str(budget) for budget in _list(budgets)],
            _list(kv_types),
            _list(protocols),
            os.fspath(output) if output is not None else folder,
            os.fspath(data),
            limit,
            _list(lengths),
            shots,
            _list(seeds),
            format,
            max_prompt,
        )
    return [json.loads(line) for line in lines]


def frame(records: Sequence[dict[str, Any]]) -> "pandas.DataFrame":
    """Records of evaluate() as a pandas frame, a row for each.

    It has the columns values.NAME, labels.NAME and timings.NAME.
    """
    import pandas

    return pandas.json_normalize(
        [{key: value for key, value in record.items() if key != "series"} for record in records]
    )
