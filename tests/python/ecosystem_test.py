# SPDX-License-Identifier: Apache-2.0
"""Users of the package: the pipeline, lm-eval's model, the examples, the command."""

import json
import math
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import winnow

EXAMPLES = pathlib.Path(__file__).parents[2] / "examples" / "python"
ANSWER = 6  # tokens


def python(*arguments, **environment):
    return subprocess.run(
        [sys.executable, *map(str, arguments)], check=True, capture_output=True, text=True, env={**os.environ, **environment}
    ).stdout


@pytest.fixture
def file(text, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(text * 3)
    return path


def test_a_pipeline_answers_what_the_session_answers(session, text):
    pipe = winnow.pipeline(session.model, threads=1)
    questions = ["and then", "who"]
    answers = pipe(text, questions=questions, press="knorm", compression_ratio=0.6, max_new_tokens=ANSWER)["answers"]
    rows = session.prefill(text, questions, ("knorm", "40%"), protocol="question-agnostic")
    assert answers == [winnow.answer(row[0], max_tokens=ANSWER).text for row in rows]
    assert pipe(text, "who", press="knorm", budget="40%", max_new_tokens=ANSWER) == {"answer": answers[1]}


def test_a_pipeline_without_a_press_answers_from_the_full_cache(session, text):
    [[cache]] = session.prefill(text, ["who"], "full")
    expected = winnow.answer(cache, max_tokens=ANSWER).text
    pipe = winnow.Pipeline(session)
    assert pipe(text, "who", press=None, max_new_tokens=ANSWER) == {"answer": expected}
    assert pipe(text, "who", press=None, compression_ratio=0, max_new_tokens=ANSWER) == {"answer": expected}


def test_an_answer_goes_on_from_its_prefix(session, text):
    [[cache]] = session.prefill(text, ["who"], "full")
    session.extend_tokens(cache, session.model.tokenize("The answer"))
    expected = winnow.answer(cache, max_tokens=ANSWER).text
    assert winnow.Pipeline(session)(text, "who", answer_prefix="The answer", max_new_tokens=ANSWER) == {"answer": expected}


def test_a_long_context_is_cut_with_a_warning(session, text):
    model = session.model
    short = next(text[:n] for n in range(len(text), 0, -1) if len(model.tokenize(text[:n])) <= 10)
    with pytest.warns(UserWarning, match="the first 10 are read"):
        cut = winnow.Pipeline(session)(text, "who", max_context_length=10, max_new_tokens=ANSWER)
    assert cut == winnow.Pipeline(session)(short, "who", max_new_tokens=ANSWER)


@pytest.mark.parametrize("asked", [
    {},
    {"question": "q", "questions": ["q"]},
    {"questions": "who"},
    {"question": "q", "compression_ratio": 1.0, "press": "knorm"},
    {"question": "q", "compression_ratio": "0.5", "press": "knorm"},
    {"question": "q", "compression_ratio": 0.5, "budget": 40, "press": "knorm"},
    {"question": "q", "compression_ratio": 0.5},
    {"question": "q", "budget": 40, "press": "full"},
    {"question": "q", "press": object()},
    {"question": "q", "press": ""},
    {"question": "q", "max_context_length": 0},
])  # fmt: skip
def test_a_pipeline_refuses_what_does_not_go_together(session, text, asked):
    with pytest.raises(winnow.UsageError):
        winnow.Pipeline(session)(text, **asked)


def test_records_become_a_frame(session, tmp_path):
    task = tmp_path / "task.jsonl"
    task.write_text(json.dumps({"question": "word1 word2 word3", "outputs": ["word1"], "max_tokens": 2}) + "\n")
    records = winnow.evaluate(session, task, ["full", "knorm"], "50%")
    frame = winnow.frame(records)
    assert list(frame["spec"]) == ["full", "knorm"] and list(frame["score"]) == [record["score"] for record in records]
    assert (frame["timings.prefill_ms"] > 0).all() and "series" not in frame


def test_examples_run(path, file, tmp_path):
    lines = python(EXAMPLES / "write_a_method.py", path, file).splitlines()
    assert lines[0].endswith("100 % as my-keydiff") and lines[1].endswith("100 % as my-keydiff") and len(lines) == 4
    picture = tmp_path / "kept.png"
    said = python(EXAMPLES / "compare_methods.py", path, file, "who", picture, MPLCONFIGDIR=str(tmp_path))
    assert said.count(": ") >= 6 and picture.read_bytes().startswith(b"\x89PNG")
    rows = python(EXAMPLES / "sweep_budgets.py", path, file, "who").splitlines()
    assert len(rows) == 9 and all(float(row.rsplit(" ", 1)[1]) >= 0 for row in rows)


@pytest.fixture(scope="module")
def lm():
    pytest.importorskip("lm_eval")
    from lm_eval.api.instance import Instance

    import winnow.lm_eval

    def make(path, **options):
        model = winnow.lm_eval.Winnow(path, threads=1, **options)

        def ask(kind, *arguments):
            return getattr(model, kind)([Instance(kind, {}, each, i) for i, each in enumerate(arguments)])

        return ask

    return make


def logprob_of(session, tokens, first):
    """Log probability of the tokens from `first` on, computed by reading each beginning as a prompt of its own."""
    total = 0.0
    for end in range(first, len(tokens)):
        logits = session.read_tokens(tokens[:end])[0].logits.astype(np.float64)
        total += logits[tokens[end]] - logits.max() - math.log(np.exp(logits - logits.max()).sum())
    return total


def test_loglikelihoods_are_those_of_prompts(lm, path, model):
    session = winnow.Session(model, threads=1, precision="f32")
    context, continuation = "word0 word1 word2", " word3 word4"
    ask = lm(path, batch_size=2)
    got = ask("loglikelihood", (context, continuation), (context, " word6"), (context, continuation))
    whole = model.prompt(context + continuation, format="raw")[0].tolist()
    expected = logprob_of(session, whole, len(model.prompt(context, format="raw")[0]))
    assert got[0] == got[2] and got[0][0] == pytest.approx(expected, abs=0.02) and got[1] != got[0]
    [rolling] = ask("loglikelihood_rolling", (context,))
    whole = model.prompt(context, format="raw")[0].tolist()
    plain = model.tokenize(context).tolist()
    assert rolling == pytest.approx(logprob_of(session, whole[: len(whole) - len(plain)] + plain, len(whole) - len(plain)), abs=0.02)


def test_lm_eval_gives_the_command_s_answers(lm, path, text, tmp_path):
    prompts = [text + question for question in (" and", " who", " why")]
    samples = [{"question": prompt, "outputs": ["word"], "max_tokens": ANSWER} for prompt in prompts]
    file = tmp_path / "own.jsonl"
    file.write_text("".join(json.dumps(sample) + "\n" for sample in samples))
    command = [os.environ["WINNOW"], "eval", file, "-m", path, "--raw", "--kv", "snapkv:window=8", "--budget", "40", "--threads", "1", "-q"]
    subprocess.run([*map(str, command), "-o", str(tmp_path / "records")], check=True, capture_output=True)
    records = [json.loads(line) for line in (tmp_path / "records" / "records.jsonl").read_text().splitlines()]
    ask = lm(path, kv="snapkv:window=8", budget=40, batch_size=2)
    options = {"until": [], "max_gen_toks": ANSWER}
    answers = ask("generate_until", *((prompt, options) for prompt in prompts))
    assert answers == [record["answer"] for record in records] and len(set(answers)) > 1


def test_lm_eval_runs_a_task_of_local_files(path, text, tmp_path):
    pytest.importorskip("lm_eval")
    (tmp_path / "own.jsonl").write_text("".join(json.dumps({"text": text, "choices": ["word0", "word1"], "gold": i % 2}) + "\n" for i in range(4)))
    (tmp_path / "own.yaml").write_text(
        "task: own\ndataset_path: json\n"
        f"dataset_kwargs: {{data_files: {{test: {tmp_path}/own.jsonl}}}}\n"
        "test_split: test\noutput_type: multiple_choice\ndoc_to_text: '{{text}}'\ndoc_to_target: gold\ndoc_to_choice: choices\n"
        "metric_list: [{metric: acc}]\n"
    )
    said = python("-m", "winnow.lm_eval", "run", "--model", "winnow", "--model_args", f"path={path},kv=snapkv:window=8,budget=40,threads=1",
                  "--tasks", "own", "--include_path", tmp_path, HF_HOME=str(tmp_path / "hf"), HF_HUB_OFFLINE="1")  # fmt: skip
    assert "own" in said and "acc" in said
