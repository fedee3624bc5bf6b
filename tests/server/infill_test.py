# SPDX-License-Identifier: Apache-2.0
"""llama.cpp's /infill: the prompt built with the file's fill-in-the-middle tokens, and the form of answers."""

import json

import pytest
from gguf_keys import UINT32, write_with_keys
from service import Server, sentence

INFILL = "/infill"
PRE, SUF, MID, REP, SEP = 270, 271, 272, 273, 274  # words of the tiny model's vocabulary
NEEDED = {"fim_pre": PRE, "fim_suf": SUF, "fim_mid": MID}
BODY = {"input_prefix": "def f(x):\n", "input_suffix": "\n    return y", "n_predict": 12, "ignore_eos": True}


def serving(model, work, *options, **tokens):
    keys = {f"tokenizer.ggml.{name}_token_id": (UINT32, token) for name, token in tokens.items()}
    return Server(write_with_keys(model, f"{work}/{len(tokens)}.gguf", keys), *(options or ("--context", "1000")))


def ids(server, text):
    return server.good("/tokenize", {"content": text, "add_special_tokens": False, "parse_special": False})["tokens"]


def continued(server, tokens, **fields):
    """The text after some tokens, and the number of tokens of the prompt."""
    reply = server.good("/v1/completions", {"prompt": tokens, "max_tokens": 12, "ignore_eos": True, **fields})
    return reply["choices"][0]["text"], reply["usage"]["prompt_tokens"]


def infilled(server, **fields):
    reply = server.good(INFILL, {**BODY, **fields})
    return reply["content"], reply["tokens_evaluated"]


def test_the_parts_stand_as_by_llama_cpp(model, work):
    with serving(model, work, **NEEDED) as one:
        prefix, suffix = ids(one, BODY["input_prefix"]), ids(one, BODY["input_suffix"])
        expected = [1, PRE, *prefix, SUF, *suffix, MID]
        assert infilled(one) == continued(one, expected)
        prompted = [1, PRE, *prefix, *ids(one, "    y ="), SUF, *suffix, MID]
        assert infilled(one, prompt="    y =") == continued(one, prompted)
        assert infilled(one, input_prefix="", input_suffix="") == continued(one, [1, PRE, SUF, MID])
        extra = [{"filename": "a.py", "text": "a = 1"}, {"text": "b = 2"}]
        before = [token for file in extra for token in ids(one, "\n\n--- snippet ---\n\n") + ids(one, file["text"])]
        assert infilled(one, input_extra=extra) == continued(one, before + expected)


def test_files_have_their_names_where_the_model_knows_files(model, work):
    with serving(model, work, **NEEDED, fim_rep=REP, fim_sep=SEP) as one:
        fixed = [1, PRE, *ids(one, BODY["input_prefix"]), SUF, *ids(one, BODY["input_suffix"]), MID]
        own = [SEP, *ids(one, "filename\n")]
        repository = [REP, *ids(one, "myproject\n")]
        assert infilled(one) == continued(one, [*repository, *own, *fixed])
        extra = [{"filename": "a.py", "text": "a = 1"}, {"text": "b = 2"}]
        files = [SEP, *ids(one, "a.py\n"), *ids(one, "a = 1"), SEP, *ids(one, "tmp\n"), *ids(one, "b = 2")]
        assert infilled(one, input_extra=extra) == continued(one, [*repository, *files, *own, *fixed])


def test_the_last_files_fill_the_context(model, work):
    with serving(model, work, "--context", "300", **NEEDED, fim_sep=SEP) as one:
        extra = [{"filename": f"{i}.py", "text": f"{i} " * 40} for i in range(20)]
        _, tokens = infilled(one, input_extra=extra)
        assert tokens == 300 - 12
        fixed = [1, PRE, *ids(one, BODY["input_prefix"]), SUF, *ids(one, BODY["input_suffix"]), MID]
        files = [token for file in extra for token in [SEP, *ids(one, file["filename"] + "\n"), *ids(one, file["text"])]]
        everything = [*files, SEP, *ids(one, "filename\n"), *fixed]
        assert infilled(one, input_extra=extra) == continued(one, everything[-288:])


def test_names_of_control_tokens_are_text_in_what_is_filled_in(model, work):
    with serving(model, work, **NEEDED) as one:
        plain, named = (infilled(one, input_prefix=text)[1] for text in ("</s", "</s>"))
        assert named == plain + 1, "a letter more, and no token of three letters less"


def test_the_form_is_llama_cpps(model, work):
    with serving(model, work, **NEEDED) as one:
        reply = one.good(INFILL, BODY)
        assert (reply["index"], reply["stop"], reply["stop_type"], reply["tokens_predicted"], reply["truncated"]) == (0, True, "limit", 12, False)
        assert reply["timings"]["predicted_n"] == 12 and reply["winnow"]["spec"] == "full" and reply["model"]
        status, headers, text = one.ask("POST", INFILL, json.dumps({**BODY, "stream": True}))
        assert status == 200 and headers["Content-Type"] == "text/event-stream"
        events = [json.loads(line.removeprefix("data: ")) for line in text.decode().split("\n\n") if line.startswith("data: ")]
        assert [event["stop"] for event in events] == [False] * (len(events) - 1) + [True]
        assert "".join(event["content"] for event in events) == reply["content"] and events[-1]["tokens_predicted"] == 12
        letter = next(letter for letter in reply["content"] if letter.isascii())
        stopped = one.good(INFILL, {**BODY, "stop": [letter]})
        assert (stopped["stop_type"], stopped["stopping_word"]) == ("word", letter)
        ended = one.good(INFILL, {**BODY, "ignore_eos": False, "logit_bias": {"2": 100}})
        assert (ended["stop_type"], ended["content"]) == ("eos", "")


@pytest.mark.parametrize("missing", [None, *NEEDED])
def test_a_model_without_the_tokens_says_so(model, work, missing):
    tokens = {name: token for name, token in NEEDED.items() if missing and name != missing}
    with serving(model, work, **tokens) as one:
        status, reply = one.post(INFILL, BODY)
        assert status == 501 and sentence(reply, "does not support infill")["param"] is None, reply


BAD = [
    ({"input_prefix": None}, 400, "input_prefix"),
    ({"input_suffix": None}, 400, "input_suffix"),
    ({"input_prefix": 5}, 400, "input_prefix"),
    ({"prompt": [5]}, 400, "prompt"),
    ({"input_extra": {}}, 400, "input_extra"),
    ({"input_extra": ["x"]}, 400, "input_extra[0]"),
    ({"input_extra": [{"filename": "x"}]}, 400, "input_extra[0].text"),
    ({"input_extra": [{"text": "x", "filename": 5}]}, 400, "input_extra[0].filename"),
    ({"n": 2}, 501, "n"),
    ({"logprobs": 2}, 501, "logprobs"),
    ({"echo": True}, 501, "echo"),
]


def test_what_cannot_be_is_refused(model, work):
    with serving(model, work, **NEEDED) as one:
        for change, code, field in BAD:
            status, reply = one.post(INFILL, {**BODY, **change})
            assert status == code and sentence(reply)["param"] == field, (change, reply)
        for field in ("input_prefix", "input_suffix", "prompt"):
            status, reply = one.post(INFILL, {**BODY, field: "words " * 2000})
            assert status == 400 and reply["error"]["code"] == "context_length_exceeded", reply
        one.good(INFILL, BODY)
