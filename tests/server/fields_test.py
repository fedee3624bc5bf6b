# SPDX-License-Identifier: Apache-2.0
"""Fields are checked by type and range; a wrong value is refused with the field's name, and the server goes on."""

import json
import re
import subprocess

import pytest
from program import WINNOW
from service import Server, sentence

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
VALUES = {"null": None, "boolean": True, "number": 1, "fraction": 0.5, "text": "x", "list": [{}], "object": {"x": []}}
NUMBER = {"number", "fraction"}
# Valid and invalid values of each field, besides null and absent.
BOTH = {
    "model": {"text"},
    "user": {"text"},
    "cache_salt": {"text"},
    "cache_prompt": {"boolean"},
    "priority": {"number"},
    "max_tokens": {"number"},
    "max_completion_tokens": {"number"},
    "min_tokens": {"number"},
    "temperature": NUMBER,
    "top_p": NUMBER,
    "min_p": NUMBER,
    "top_k": {"number"},
    "seed": {"number"},
    "n": {"number"},
    "presence_penalty": NUMBER,
    "frequency_penalty": NUMBER,
    "repetition_penalty": NUMBER,
    "logit_bias": set(),
    "stop": {"text"},
    "stop_token_ids": set(),
    "ignore_eos": {"boolean"},
    "stream": {"boolean"},
    "stream_options": {"object"},
    "winnow": set(),
    "echo": {"boolean"},
    "best_of": {"number"},
    "include_stop_str_in_output": {"boolean"},
    "use_beam_search": {"boolean"},
    "bad_words": {"list"},
    "allowed_token_ids": {"list"},
    "typical_p": NUMBER,
    "response_format": {"object"},
    "tools": {"list"},
}
LEGACY = {"functions": {"list"}, "function_call": {"object"}}
FIELDS = {
    CHAT: {**BOTH, **LEGACY, "messages": set(), "tool_choice": {"object"}, "parallel_tool_calls": {"boolean"}, "logprobs": {"boolean"}, "top_logprobs": {"number"}, "add_generation_prompt": {"boolean"}, "continue_final_message": {"boolean"}},
    COMPLETION: {**BOTH, "prompt": {"text"}, "logprobs": {"number"}},
}
GOOD = {CHAT: {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}, COMPLETION: {"prompt": "hello", "max_tokens": 1}}
KEEPING = {
    "kv": {"text"},
    "budget": {"number", "text"},
    "kv_type": {"text"},
    "protocol": {"text"},
}


def refused(server, path, body, status=400):
    got, reply = server.post(path, body)
    assert got == status, (body, reply)
    return sentence(reply)


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_a_field_of_a_wrong_type_is_named(server, path):
    for name, allowed in FIELDS[path].items():
        for kind, value in VALUES.items():
            if kind in allowed | {"null"}:
                continue
            error = refused(server, path, {**GOOD[path], name: value})
            assert error["param"].startswith(name), (name, kind, error)
            assert error["type"] == "invalid_request_error", error


def test_a_field_of_winnow_of_a_wrong_type_is_named(server):
    for name, allowed in KEEPING.items():
        for kind, value in VALUES.items():
            if kind not in allowed | {"null"}:
                assert refused(server, CHAT, {**GOOD[CHAT], "winnow": {name: value}})["param"] == f"winnow.{name}", (name, kind)


def test_a_field_that_is_null_is_not_there(server):
    for path, fields in FIELDS.items():
        nulls = {name: None for name in fields if name not in GOOD[path]}
        plain = server.good(path, GOOD[path])
        assert server.good(path, {**GOOD[path], **nulls})["choices"] == plain["choices"]


RANGES = [
    ("max_tokens", -1, "from 0 to"),
    ("max_tokens", 1 << 40, "from 0 to"),
    ("max_tokens", 1e300, "from 0 to"),
    ("temperature", -0.1, "from 0 to"),
    ("top_p", 1.5, "from 0 to 1"),
    ("min_p", -1, "from 0 to 1"),
    ("top_k", -2, "from -1 to"),
    ("n", 0, "from 1 to 128"),
    ("n", 129, "from 1 to 128"),
    ("presence_penalty", 3, "from -2 to 2"),
    ("frequency_penalty", -3, "from -2 to 2"),
    ("repetition_penalty", 0, "from"),
    ("min_tokens", 2, "min_tokens is 2"),
    ("logit_bias", {"x": 1}, "'x'"),
    ("logit_bias", {"-1": 1}, "'-1'"),
    ("logit_bias", {"99999": 1}, "'99999'"),
    ("logit_bias", {"5": 101}, "from -100 to 100"),
    ("logit_bias", {"5": "x"}, "a number"),
    ("stop", ["x"] * 65, "65"),
    ("stop", ["x", 5], "stop[1]"),
    ("stop_token_ids", [5, 99999], "stop_token_ids[1]"),
    ("stream_options", {}, "stream"),
    ("seed", 1 << 63, "a whole number"),
    ("seed", 0.5, "a whole number"),
]


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
@pytest.mark.parametrize("name, value, words", RANGES)
def test_a_field_out_of_its_range_is_named(server, path, name, value, words):
    error = refused(server, path, {**GOOD[path], name: value})
    assert words in error["message"] and error["param"].startswith(name), error


def test_a_whole_number_may_have_a_point(server):
    assert server.good(COMPLETION, '{"prompt": "hello", "max_tokens": 3.0, "ignore_eos": true}')["usage"]["completion_tokens"] == 3


MISSING = [
    ("echo", True),
    ("best_of", 3),
    ("include_stop_str_in_output", True),
    ("use_beam_search", True),
    ("bad_words", ["x"]),
    ("allowed_token_ids", [5]),
    ("typical_p", 0.5),
    ("functions", [{"name": "clock", "parameters": {"type": "object"}}]),
    ("function_call", {"name": "clock"}),
]


@pytest.mark.parametrize("name, value", MISSING)
def test_what_is_not_there_yet_is_said(server, name, value):
    error = refused(server, CHAT, {**GOOD[CHAT], name: value}, status=501)
    assert error["param"].startswith(name) and "not implemented" in error["message"], error


def test_what_was_called_otherwise_before_is_named_with_its_new_name(server):
    functions = refused(server, CHAT, {**GOOD[CHAT], "functions": [{"name": "clock"}]}, status=501)
    assert "tools" in functions["message"]
    call = {"role": "assistant", "content": None, "function_call": {"name": "clock", "arguments": "{}"}}
    error = refused(server, CHAT, {"messages": [*GOOD[CHAT]["messages"], call]}, status=501)
    assert error["param"] == "messages[1].function_call" and "tool_calls" in error["message"], error


def test_harmless_forms_of_what_is_not_there_are_taken(server):
    server.good(CHAT, {**GOOD[CHAT], "echo": False, "best_of": 1, "use_beam_search": False, "bad_words": [], "typical_p": 1, "response_format": {"type": "text"}, "tools": [], "tool_choice": "none", "functions": [], "function_call": "none"})


SPECS = [
    ({"kv": "snapky", "budget": 40}, "winnow.kv", "did you mean snapkv"),
    ({"kv": "snapkv:windw=3", "budget": 40}, "winnow.kv", "did you mean window"),
    ({"kv": "snapkv"}, "winnow.budget", "budget"),
    ({"kv": "kvzap", "budget": 40}, None, "kvzap needs a calibration of the model"),
    ({"kv": "snapkv", "budget": "0"}, "winnow.budget", "'0'"),
    ({"kv": "snapkv", "budget": 0}, "winnow.budget", "from 1 to"),
    ({"kv": "snapkv", "budget": "120%"}, "winnow.budget", "over 100 %"),
    ({"kv_type": "q5_1"}, "winnow.kv_type", "q8_0"),
    ({"protocol": "both"}, "winnow.protocol", "question-agnostic"),
    ({"kx": "snapkv"}, "winnow.kx", "did you mean kv?"),
    ({"budgett": 5}, "winnow.budgett", "did you mean budget?"),
    ({"method": "snapkv"}, "winnow.method", "no field method: there are ask, budget, documents, kv, "),
]


@pytest.mark.parametrize("keeping, field, words", SPECS)
def test_a_cache_that_cannot_be_is_refused_as_by_the_command(server, keeping, field, words):
    error = refused(server, CHAT, {**GOOD[CHAT], "winnow": keeping})
    assert error["param"] == field and words in error["message"], error


def test_a_budget_of_too_few_bytes_says_how_many_are_needed(server):
    def body(budget):
        return {"prompt": [5] * 60, "max_tokens": 2, "winnow": {"kv": "snapkv", "budget": budget}}

    error = refused(server, COMPLETION, body("1KiB"))
    assert error["param"] == "winnow.budget" and "a budget of 1KiB has room for 1 entries per KV head" in error["message"], error
    least = int(re.search(r": give (\d+)KiB or more$", error["message"])[1])
    assert refused(server, COMPLETION, body(f"{least - 1}KiB"))["param"] == "winnow.budget"
    assert server.good(COMPLETION, body(f"{least}KiB"))["winnow"]["entries_per_head"] >= 17
    assert refused(server, COMPLETION, body(5))["param"] == "winnow.budget"


MESSAGES = [
    ([], "messages"),
    ([5], "messages[0]"),
    ([{"content": "x"}], "messages[0].role"),
    ([{"role": "boss", "content": "x"}], "messages[0].role"),
    ([{"role": "user", "content": 5}], "messages[0].content"),
    ([{"role": "user", "content": []}], "messages[0].content"),
    ([{"role": "user", "content": ["x"]}], "messages[0].content[0]"),
    ([{"role": "user", "content": [{"type": "image_url"}]}], "messages[0].content[0].type"),
    ([{"role": "user", "content": [{"type": "text"}]}], "messages[0].content[0].text"),
    ([{"role": "user", "content": [{"type": "text", "text": 5}]}], "messages[0].content[0].text"),
]


@pytest.mark.parametrize("messages, field", MESSAGES)
def test_a_message_that_cannot_be_is_named(server, messages, field):
    assert refused(server, CHAT, {"messages": messages})["param"] == field


PROMPTS = [
    ([], "prompt"),
    (["x"] * 129, "prompt"),
    ([5, "x"], "prompt[1]"),
    (["x", 5], "prompt[1]"),
    ([[5], [6, -1]], "prompt[1][1]"),
    ([[5], [6, 288]], "prompt[1][1]"),
    ([[[5]]], "prompt[0][0]"),
]


@pytest.mark.parametrize("prompt, field", PROMPTS)
def test_a_prompt_that_cannot_be_is_named(server, prompt, field):
    assert refused(server, COMPLETION, {"prompt": prompt})["param"] == field


BODIES = {
    "empty": b"",
    "no JSON": b"hello",
    "cut": b'{"prompt": "x"',
    "a list": b"[]",
    "a text": b'"x"',
    "invalid UTF-8": b'{"prompt": "\xff\xfe"}',
    "a lone surrogate": b'{"prompt": "\\ud800"}',
    "NaN": b'{"prompt": "x", "temperature": NaN}',
    "a huge number": b'{"prompt": "x", "temperature": 1e999}',
    "100 levels": b'{"prompt": ' + b"[" * 100 + b"]" * 100 + b"}",
    "60,000 levels": b'{"x": ' + b"[" * 60_000 + b"]" * 60_000 + b"}",
    "two values": b'{"prompt": "x"} {"prompt": "x"}',
    "a name twice": b'{"prompt": "x", "n": 1, "prompt": "x"}',
    "a name twice below": b'{"prompt": "x", "y": [{"z": 1, "\\u007a": 1}]}',
    "very many values": b'{"prompt": "x", "y": [' + b"1," * (1 << 20) + b"1]}",
}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("path", [CHAT, COMPLETION, "/tokenize", "/detokenize", "/apply-template"])
def test_a_body_that_cannot_be_read(server, path, name):
    assert refused(server, path, BODIES[name])["type"] == "invalid_request_error"


@pytest.mark.parametrize("field", ["tools", "response_format"])
def test_a_field_of_very_many_members_that_comes_twice(server, field):
    members = ",".join(f'"m{i}": {i}' for i in range(400_000))
    once, twice = (f'{{"messages": [{{"role": "user", "content": "x"}}], {", ".join([f""" "{field}": {{{members}}}"""] * count)}}}' for count in (1, 2))
    assert f"has the name {field} twice" in refused(server, CHAT, twice)["message"]
    assert refused(server, CHAT, once)["message"]


def test_very_many_fields_are_read_in_good_time(server):
    server.good(COMPLETION, {"others": {f"field{i}": i for i in range(200_000)}, **GOOD[COMPLETION]})
    assert refused(server, COMPLETION, {f"field{i}": i for i in range(200_000)})["message"] == "the body has 200000 members: at most 1024"


def test_unknown_fields_are_ignored_and_named_once(model):
    from service import Server

    with Server(model) as one:
        for _ in range(3):
            one.good(CHAT, {**GOOD[CHAT], "frobnicate": 1, "suffix": "x", "\x1b[31m": 2})
        code, said = one.end()
    assert code == 0 and said.count("frobnicate") == 1 and said.count("suffix") == 1 and "\\x1b[31m" in said and "\x1b" not in said, said
    time = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d "
    assert all(re.match(time, line) for line in said.splitlines()[1:]), said


@pytest.mark.parametrize("path", [CHAT, COMPLETION])
def test_a_prompt_over_the_context(model, path):
    from service import Server

    with Server(model, "--context", "100") as one:
        for words in (60, 5000):
            text = "words " * words
            status, reply = one.post(path, {"prompt": text, "messages": [{"role": "user", "content": text}]})
            error = sentence(reply, "prompt is too long", "exceeds the available context size", "100")
            assert status == 400 and error["code"] == "context_length_exceeded", reply
        answer = one.good(COMPLETION, {"prompt": "x" * 80, "max_tokens": 1000, "ignore_eos": True})
        assert answer["usage"]["total_tokens"] == 100 and answer["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    "path, body_of",
    [
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"kv": x}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"kv": f"snapkv:{x}=1"}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"kv": f"snapkv:window={x}"}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"kv": "snapkv", "budget": x}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"kv_type": x}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"protocol": x}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"session": x + "\n"}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {"documents": ["d"], "ask": x}}),
        (CHAT, lambda x: {**GOOD[CHAT], "winnow": {x: 1}}),
        (CHAT, lambda x: {**GOOD[CHAT], "messages": [{"role": x, "content": "y"}]}),
        (CHAT, lambda x: {**GOOD[CHAT], "logit_bias": {x: 1}}),
        (CHAT, lambda x: {**GOOD[CHAT], "n": x}),
        (CHAT, lambda x: {**GOOD[CHAT], "response_format": {"type": x}}),
        (CHAT, lambda x: {**GOOD[CHAT], "tool_choice": x}),
        ("/v1/documents", lambda x: {"name": x + "\n", "text": "y"}),
        ("/v1/documents", lambda x: {"name": "n", "text": "y", "tags": [x + "\n"]}),
    ],
)
def test_a_zero_byte_does_not_cut_a_sentence(work, model, path, body_of):
    with Server(model, "--documents", f"{work}/shelf", "--sessions", f"{work}/sessions") as server:
        plain, cut = (refused(server, path, body_of(text))["message"] for text in ("aXb", "a\0b"))
        assert "aXb" in plain and cut in [plain.replace("aXb", shown) for shown in ("a\\x00b", "a\\u0000b")]


@pytest.fixture(scope="module")
def recommended():
    """The spec that `auto` stands for with each protocol."""
    return json.loads(subprocess.run([WINNOW, "methods", "auto", "--json"], capture_output=True, check=True).stdout)[0]["parts"]


def spec_of(server, path, **winnow):
    body = dict(GOOD[path], **({"winnow": winnow} if winnow else {}))
    if path == CHAT:
        body["messages"] = [{"role": "user", "content": [{"type": "text", "text": "some words " * 8}, {"type": "text", "text": "and?"}]}]
    return server.good(path, body)["winnow"]["spec"]


def test_auto_goes_by_the_protocol_of_each_request(model, recommended):
    """Even if `auto` comes from the server's options and a request changes only the protocol."""
    for options in (["--kv", "auto", "--budget", "24"], ["--budget", "24"], ["--budget", "24", "--protocol", "question-agnostic"]):
        with Server(model, *options) as server:
            for protocol, spec in recommended.items():
                assert spec_of(server, CHAT, protocol=protocol) == spec
                assert spec_of(server, CHAT, protocol=protocol, kv="auto", budget=30) == spec
            default = options[-1] if "--protocol" in options else "question-aware"
            assert spec_of(server, CHAT) == recommended[default]
            assert server.get("/props")[1]["default_generation_settings"]["winnow"]["kv"] == "auto"
            assert spec_of(server, CHAT, kv="full") == "full"


def test_a_budget_alone_means_auto_where_the_default_keeps_everything(model, server, recommended):
    assert spec_of(server, CHAT) == "full"
    for protocol, spec in recommended.items():
        assert spec_of(server, CHAT, budget=24, protocol=protocol) == spec
    with Server(model, "--kv", "snapkv:window=8", "--budget", "24") as other:
        assert spec_of(other, CHAT, budget=30) == "snapkv:window=8"
