# SPDX-License-Identifier: Apache-2.0
"""Limits on the sizes in a request: each limit in /props is enforced and matches the guide."""

import json
import pathlib
import re

import pytest
from service import Server, sentence

CHAT, COMPLETION, TOKENIZE, DOCUMENTS = "/v1/chat/completions", "/v1/completions", "/tokenize", "/v1/documents"
MESSAGES, RESPONSES = "/v1/messages", "/v1/responses"
GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/server.md"


def chat(**fields):
    return CHAT, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 0, **fields}


def message(**fields):
    return chat(messages=[{"role": "user", "content": "hi", **fields}])


def tool(**fields):
    return chat(tools=[{"type": "function", "function": {"name": "f", **fields}}], tool_choice="none")


def tool_of_messages(**fields):
    return MESSAGES, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 0, "tools": [{"name": "f", "input_schema": {}, **fields}], "tool_choice": {"type": "none"}}


def calls(count):
    one = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    return chat(messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "tool_calls": [one] * count}])


# A request with a field of a given size, and the field's name and unit in the error message.
REQUESTS = {
    ("messages", "elements"): lambda n: chat(messages=[{"role": "user", "content": "a"}] * n),
    ("messages[].tool_calls", "elements"): calls,
    ("stop", "elements"): lambda n: chat(stop=["x"] * n),
    ("logit_bias", "members"): lambda n: chat(logit_bias={str(i): 1 for i in range(n)}),
    ("tools", "elements"): lambda n: chat(tools=[{"type": "function", "function": {"name": f"f{i}"}} for i in range(n)], tool_choice="none"),
    ("tools[].function.description", "bytes"): lambda n: tool(description="x" * n),
    ("tools[].description", "bytes"): lambda n: tool_of_messages(description="x" * n),
    ("guided_json", "bytes"): lambda n: chat(guided_json="{}" + " " * (n - 2)),
    ("structured_outputs.json", "bytes"): lambda n: chat(structured_outputs={"json": "{}" + " " * (n - 2)}),
    ("stop_sequences", "elements"): lambda n: (MESSAGES, {**chat()[1], "stop_sequences": ["x"] * n}),
    ("input", "elements"): lambda n: (RESPONSES, {"input": [{"role": "user", "content": "a"}] * n, "max_output_tokens": 0}),
    ("metadata", "members"): lambda n: chat(metadata={f"k{i}": "v" for i in range(n)}),
    ("winnow.documents", "elements"): lambda n: chat(winnow={"documents": ["a"] * n}),
    ("tags", "elements"): lambda n: (DOCUMENTS, {"name": "a", "text": "b", "tags": ["x"] * n}),
}
def said(**fields):
    return chat(messages=[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes", **fields}, {"role": "user", "content": "and?"}])


def call_of(arguments):
    return {"id": "c", "type": "function", "function": {"name": "f", "arguments": json.dumps({"x": arguments})}}


def blocks(role, *content):
    return MESSAGES, {"messages": [{"role": "user", "content": "hi"}, {"role": role, "content": content}], "max_tokens": 1}


def items(*more):
    return RESPONSES, {"input": [{"role": "user", "content": "hi"}, *more], "max_output_tokens": 0}


# Requests with a text that may be as large as the body.
TEXTS = {
    "content": lambda text: message(content=text),
    "part": lambda text: message(content=[{"type": "text", "text": text}]),
    "reasoning": lambda text: said(reasoning=text),
    "reasoning_content": lambda text: said(reasoning_content=text),
    "arguments": lambda text: said(tool_calls=[call_of(text)]),
    "system": lambda text: (MESSAGES, {**blocks("user", {"type": "text", "text": "so"})[1], "system": [{"type": "text", "text": text}]}),
    "system text": lambda text: (MESSAGES, {**blocks("user", {"type": "text", "text": "so"})[1], "system": text}),
    "text of messages": lambda text: (MESSAGES, {"messages": [{"role": "user", "content": text}, {"role": "assistant", "content": text}], "max_tokens": 1}),
    "text block": lambda text: blocks("assistant", {"type": "text", "text": text}),
    "thinking block": lambda text: blocks("assistant", {"type": "thinking", "thinking": text, "signature": text}, {"type": "text", "text": "so"}),
    "tool_use block": lambda text: blocks("assistant", {"type": "tool_use", "id": "c", "name": "f", "input": {"x": text}}),
    "tool_result block": lambda text: blocks("user", {"type": "tool_result", "tool_use_id": "c", "content": text}),
    "tool_result blocks": lambda text: blocks("user", {"type": "tool_result", "tool_use_id": "c", "content": [{"type": "text", "text": text}]}),
    "input": lambda text: (RESPONSES, {"input": text, "max_output_tokens": 0}),
    "text item": lambda text: items({"role": "user", "content": text}),
    "instructions": lambda text: (RESPONSES, {**items()[1], "instructions": text}),
    "message item": lambda text: items({"role": "assistant", "content": [{"type": "output_text", "text": text}]}),
    "reasoning item": lambda text: items({"type": "reasoning", "summary": [], "content": [{"type": "reasoning_text", "text": text}], "encrypted_content": text}),
    "function_call item": lambda text: items({"type": "function_call", "call_id": "c", "name": "f", "arguments": json.dumps({"x": text})}),
    "function_call_output item": lambda text: items({"type": "function_call_output", "call_id": "c", "output": text}),
    "function_call_output parts": lambda text: items({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": text}]}),
}
# Fields without a row of their own.
OTHERS = [
    ("bytes", "stop", lambda n: chat(stop="x" * n)),
    ("bytes", "stop[0]", lambda n: chat(stop=["x" * n])),
    ("bytes", "cache_salt", lambda n: chat(cache_salt="x" * n)),
    ("bytes", "model", lambda n: chat(model="x" * n)),
    ("bytes", "user", lambda n: chat(user="x" * n)),
    ("bytes", "winnow.kv", lambda n: chat(winnow={"kv": "x" * n})),
    ("bytes", "winnow.session", lambda n: chat(winnow={"session": "x" * n})),
    ("bytes", "messages[0].role", lambda n: message(role="x" * n)),
    ("bytes", "tools[0].function.name", lambda n: tool(name="x" * n)),
    ("bytes", "name", lambda n: (DOCUMENTS, {"name": "x" * n, "text": "b"})),
    ("elements", "stop_token_ids", lambda n: chat(stop_token_ids=[5] * n)),
    ("elements", "messages[0].content", lambda n: message(content=[{"type": "text", "text": "a"}] * n)),
    ("members", "messages[0]", lambda n: message(**{f"x{i}": 1 for i in range(n - 2)})),
    ("members", "response_format", lambda n: chat(response_format={"type": "text", **{f"x{i}": 1 for i in range(n - 1)}})),
    ("members", "the body", lambda n: chat(**{f"x{i}": 1 for i in range(n - 2)})),
]


@pytest.fixture(scope="module")
def server(model, work):
    """Refuses long texts for their tokens, before it reads them."""
    with Server(model, "--context", "1000", "--documents", f"{work}/shelf") as one:
        yield one
        one.wait_until_idle()


@pytest.fixture(scope="module")
def limits(server):
    rows = server.get("/props")[1]["field_limits"]
    return {(row["field"], row["unit"]): row["most"] for row in rows}


def is_too_large(server, request, most, unit):
    """Whether a request is refused for its size; other reasons do not count."""
    path, body = request
    _, reply = server.post(path, body)
    return f"at most {most}" in reply.get("error", {}).get("message", "") and f" {unit}: " in reply["error"]["message"]


def test_each_limit_is_kept_to(server, limits):
    own = {key: most for key, most in limits.items() if key[0] != "*" and most is not None}
    assert own.keys() <= REQUESTS.keys(), "a limit without a case here"
    for (field, unit), most in own.items():
        request = REQUESTS[field, unit]
        assert not is_too_large(server, request(min(most, 250) if unit == "members" else most), most, unit), field
        assert is_too_large(server, request(most + 1), most, unit), field


@pytest.mark.parametrize("name", TEXTS)
def test_texts_of_a_conversation_may_be_large(server, name):
    """A text is not refused for its bytes: it reaches the tokenizer, or the template leaves it out."""
    status, reply = server.post(*TEXTS[name]("some words " * 2000))
    assert status == 200 or re.search(r"\d tokens", json.dumps(reply["error"])), reply


@pytest.mark.parametrize("unit, name, request_of", OTHERS, ids=[f"{name}-{unit}" for unit, name, _ in OTHERS])
def test_each_other_field_has_the_common_limit(server, limits, unit, name, request_of):
    most = limits["*", unit]
    assert not is_too_large(server, request_of(most), most, unit)
    path, body = request_of(most + 1)
    status, reply = server.post(path, body)
    error = sentence(reply, f"{name} has {most + 1} {unit}: at most {most}")
    assert status == 400 and error["param"] == (None if name == "the body" else name), error


def test_the_guide_has_the_same_limits(limits):
    rows = re.findall(r"^\| `([^`]+)` \| ([\d,]+) (\w+) \|", GUIDE.read_text(), re.MULTILINE)
    told = {(field, unit): int(most.replace(",", "")) for field, most, unit in rows}
    common = re.search(r"any other field has at most ([\d,]+) bytes, elements or members", GUIDE.read_text())
    told |= {("*", unit): int(common[1].replace(",", "")) for unit in ("bytes", "elements", "members")}
    assert told == {key: most for key, most in limits.items() if most is not None}


@pytest.mark.parametrize("name", ["01", "+1", " 1", "1 ", "1.0", "1e0", "0x1", "", "-0", "00"])
def test_a_bias_is_for_a_token_by_its_one_name(server, name):
    path, body = chat(logit_bias={"1": 1, name: 2})
    status, reply = server.post(path, body)
    assert status == 400 and sentence(reply, f"logit_bias has the name '{name}'")["param"] == "logit_bias"


def test_salts_of_any_length_take_the_same_memory(model):
    held = {}
    parts = [{"type": "text", "text": "a text to keep " * 40}, {"type": "text", "text": "who?"}]
    body = {"messages": [{"role": "user", "content": parts}], "max_tokens": 1, "winnow": {"kv": "snapkv:window=8", "budget": 40, "protocol": "question-agnostic"}}
    for salt in ("x", "x" * 1024):
        with Server(model, "--context", "10000") as server:
            server.good(CHAT, {**body, "cache_salt": salt})
            assert server.good(CHAT, {**body, "cache_salt": salt})["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
            assert server.good(CHAT, {**body, "cache_salt": salt + "y" if len(salt) == 1 else "y" + salt[1:]})["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
            held[len(salt)] = re.search(r'winnow_kv_bytes\{[^}]*state="prefixes"[^}]*\} (\S+)', server.ask("GET", "/metrics")[2].decode())[1]
    assert held[1] == held[1024] and float(held[1]) > 0, held


def test_a_body_has_not_too_many_values(server):
    status, reply = server.post("/detokenize", {"tokens": [5] * 1_050_000})
    assert status == 400 and sentence(reply, "more than 1048576 values")
    assert server.post("/detokenize", {"tokens": [5] * 100_000})[0] == 200


def test_a_request_that_brings_too_much_is_told_so(model):
    with Server(model, "--context", "4000", "--memory", "20MiB") as server:
        status, reply = server.post(CHAT, chat(junk=["x"] * 60_000)[1])
        assert status == 413 and sentence(reply, "those of all requests together may take 16.0 MiB", "--memory")
        server.good(*chat())
