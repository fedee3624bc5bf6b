# SPDX-License-Identifier: Apache-2.0
"""Tool calls have names and arguments that their definitions allow, in whole answers and in streams."""

import json

import pytest
from service import sentence

CHAT = "/v1/chat/completions"
USER = {"role": "user", "content": "hello"}
WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Tells the weather.",
        "parameters": {
            "type": "object",
            "properties": {"town": {"$ref": "#/$defs/town"}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
            "required": ["town", "days"],
            "additionalProperties": False,
            "$defs": {"town": {"enum": ["Kyiv", "Lviv"]}},
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}}
NAMED = {"type": "function", "function": {"name": "get_weather"}}


def body(**fields):
    return {"messages": [USER], "max_tokens": 2000, "temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0, "seed": 1, "tools": [WEATHER, CLOCK], **fields}


def check_calls(calls):
    """The names that were called."""
    for call in calls:
        assert call["type"] == "function" and call["id"]
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "get_weather":
            assert list(arguments) == ["town", "days"] and arguments["town"] in ("Kyiv", "Lviv") and 1 <= arguments["days"] <= 9
        else:
            assert call["function"]["name"] == "clock" and arguments == {}
    assert len({call["id"] for call in calls}) == len(calls)
    return [call["function"]["name"] for call in calls]


def calls_of(choice):
    assert choice["finish_reason"] == "tool_calls" and choice["message"]["content"] is None, choice
    return check_calls(choice["message"]["tool_calls"])


def test_calls_that_must_come(server):
    reply = server.good(CHAT, body(tool_choice="required", n=30))
    names = [calls_of(choice) for choice in reply["choices"]]
    assert {name for called in names for name in called} == {"get_weather", "clock"}
    assert any(len(called) > 1 for called in names) and any(len(called) == 1 for called in names)


def test_one_call_at_a_time(server):
    reply = server.good(CHAT, body(tool_choice="required", parallel_tool_calls=False, n=20))
    assert all(len(calls_of(choice)) == 1 for choice in reply["choices"])


def test_the_tool_that_is_named_is_called_once(server):
    for several in (None, True):
        reply = server.good(CHAT, body(tool_choice=NAMED, parallel_tool_calls=several, n=30))
        assert all(calls_of(choice) == ["get_weather"] for choice in reply["choices"])


FORMED = {"type": "object", "properties": {"zzz": {"enum": [5, 6]}}, "required": ["zzz"], "additionalProperties": False}


def asked_with_a_form():
    """Requests of each API with tools and an answer format, each with a function that returns the answer's text and
    whether it has calls."""
    sampled = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0}
    functions = [tool["function"] for tool in (WEATHER, CLOCK)]
    yield CHAT, body(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": FORMED}}), lambda reply: (reply["choices"][0]["message"]["content"], "tool_calls" in reply["choices"][0]["message"])
    of_response = {"input": "hello", "max_output_tokens": 2000, "tools": [{"type": "function", **one} for one in functions], "text": {"format": {"type": "json_schema", "name": "x", "schema": FORMED}}}
    yield "/v1/responses", {**of_response, **sampled}, lambda reply: ("".join(part["text"] for item in reply["output"] if item["type"] == "message" for part in item["content"]), any(item["type"] == "function_call" for item in reply["output"]))
    of_message = {"messages": [USER], "max_tokens": 2000, "tools": [{"name": one["name"], "input_schema": one["parameters"]} for one in functions], "output_config": {"format": {"type": "json_schema", "schema": FORMED}}}
    yield "/v1/messages", {**of_message, **sampled}, lambda reply: ("".join(block.get("text", "") for block in reply["content"]), any(block["type"] == "tool_use" for block in reply["content"]))


@pytest.mark.parametrize("path, asked, read", asked_with_a_form(), ids=["chat", "responses", "messages"])
def test_an_answer_with_tools_and_a_form_is_a_call_or_has_the_form(server, path, asked, read):
    seen = set()
    for seed in range(20):
        text, calls = read(server.good(path, {**asked, "seed": seed}))
        seen.add(calls)
        assert calls and not text or json.loads(text)["zzz"] in (5, 6), (text, calls)
    assert seen == {False, True}, "the model chooses"


def test_an_answer_with_tools_and_a_form_streams(server):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": FORMED}}
    for seed in range(6):
        asked = body(response_format=form, seed=seed)
        whole = server.good(CHAT, asked)["choices"][0]["message"]
        deltas = [event["choices"][0]["delta"] for event in server.stream(CHAT, asked)]
        assert "".join(delta.get("content") or "" for delta in deltas) == (whole["content"] or "")
        parts = [part["function"].get("arguments", "") for delta in deltas for part in delta.get("tool_calls", [])]
        assert "".join(parts) == "".join(one["function"]["arguments"] for one in whole.get("tool_calls", []))


@pytest.mark.parametrize("choice", [None, "auto"])
def test_a_model_may_answer(server, choice):
    for seed in range(5):
        text = server.good(CHAT, body(tool_choice=choice, seed=seed, max_tokens=20))["choices"][0]
        assert text["message"].keys() == {"role", "content"} and text["finish_reason"] in ("stop", "length")


def put_together(choices):
    """The calls of a stream; a delta continues the call with its index."""
    calls = []
    for piece in (piece for choice in choices for piece in choice["delta"].get("tool_calls", [])):
        if piece["index"] == len(calls):
            calls.append({"id": piece["id"], "type": piece["type"], "function": {"name": piece["function"]["name"], "arguments": ""}})
        assert piece["index"] == len(calls) - 1, "calls come one after the other"
        calls[-1]["function"]["arguments"] += piece["function"].get("arguments", "")
    return calls


def test_a_stream_tells_the_same_calls(server):
    for seed in range(5):
        asked = body(tool_choice="required", seed=seed)
        whole = server.good(CHAT, asked)["choices"][0]["message"]["tool_calls"]
        choices = [event["choices"][0] for event in server.stream(CHAT, asked)]
        streamed = put_together(choices)
        assert check_calls(streamed) == check_calls(whole)
        assert [call["function"] for call in streamed] == [call["function"] for call in whole]
        assert choices[-1]["finish_reason"] == "tool_calls" and not any(choice["delta"].get("content") for choice in choices)
        assert sum(len(choice["delta"].get("tool_calls", [])) for choice in choices) > len(streamed), "arguments come as they are generated"


def test_a_call_that_is_cut_is_told_as_far_as_it_came(server):
    choice = server.good(CHAT, body(tool_choice=NAMED, max_tokens=60))["choices"][0]
    assert choice["finish_reason"] == "length"


def test_none_changes_nothing(server):
    plain = {name: value for name, value in body(max_tokens=20).items() if name != "tools"}
    assert server.good(CHAT, body(max_tokens=20, tool_choice="none"))["choices"] == server.good(CHAT, plain)["choices"]


def test_a_conversation_goes_on_after_calls(server):
    call = {"id": "a", "type": "function", "function": {"name": "get_weather", "arguments": '{"town": "Kyiv", "days": 1}'}}
    messages = [USER, {"role": "assistant", "content": None, "tool_calls": [call]}, {"role": "tool", "tool_call_id": "a", "content": "sunny"}]
    text = server.good("/apply-template", {"messages": messages})["prompt"]
    assert '<tool_call>\n{"name": "get_weather", "arguments": {"town": "Kyiv", "days": 1}}\n</tool_call>' in text
    assert "<tool_response>\nsunny\n</tool_response>" in text
    for nothing in ("", " ", "\n"):
        empty = {"id": "b", "type": "function", "function": {"name": "clock", "arguments": nothing}}
        server.good(CHAT, body(messages=[USER, {"role": "assistant", "tool_calls": [empty]}, {"role": "tool", "content": "12"}], max_tokens=5))
    server.good(CHAT, body(messages=messages, max_tokens=5))


def with_function(**fields):
    return [{"type": "function", "function": {**WEATHER["function"], **fields}}]


REFUSED = [
    ({"tools": [5]}, "tools[0]"),
    ({"tools": [{"type": "thing"}]}, "tools[0].type"),
    ({"tools": [{"type": "function"}]}, "tools[0].function"),
    ({"tools": with_function(name="two words")}, "tools[0].function.name"),
    ({"tools": with_function(name=None)}, "tools[0].function.name"),
    ({"tools": with_function(parameters=5)}, "tools[0].function.parameters"),
    ({"tools": [CLOCK, CLOCK]}, "tools"),
    ({"tools": [CLOCK] * 129}, "tools"),
    ({"tool_choice": "any"}, "tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "other"}}}, "tool_choice.function.name"),
    ({"tools": [], "tool_choice": "required"}, "tool_choice"),
    ({"parallel_tool_calls": 5}, "parallel_tool_calls"),
    ({"winnow": {"documents": ["a"]}}, "tools"),
    ({"messages": [USER, {"role": "assistant", "tool_calls": [{"function": {"arguments": "{}"}}]}]}, "messages[1].tool_calls[0].function.name"),
    ({"messages": [USER, {"role": "assistant", "tool_calls": [{"function": {"name": "x", "arguments": "{"}}]}]}, "messages[1].tool_calls[0].function.arguments"),
]


@pytest.mark.parametrize("fields, field", REFUSED)
def test_tools_that_cannot_be_are_refused(server, fields, field):
    status, reply = server.post(CHAT, body(**fields))
    assert status == 400 and sentence(reply)["param"] == field, reply


def test_keywords_that_a_grammar_cannot_enforce_are_named_once(server):
    parameters = {"type": "object", "properties": {"x": {"type": "string", "pattern": "(?=a)b", "format": "iri"}, "y": {"not": {}}}, "additionalProperties": {"type": "string"}}
    for _ in range(2):
        server.good(CHAT, body(tools=with_function(parameters=parameters), max_tokens=5))
    assert server.said().count("the keyword not of JSON schemas is not enforced") == 1


def test_completions_have_no_tools(server):
    status, reply = server.post("/v1/completions", {"prompt": "hello", "tools": [CLOCK]})
    assert status == 501 and sentence(reply)["param"] == "tools"
