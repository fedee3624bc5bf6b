# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Responses API: fields, the order of events, and refusals."""

import json

import pytest
from response_events import read_events, response_of
from service import Server, post_bytes, read_head, sentence

RESPONSES, CHAT = "/v1/responses", "/v1/chat/completions"
SCHEMA = {"type": "object", "properties": {"town": {"enum": ["Kyiv", "Lviv"]}}, "required": ["town"], "additionalProperties": False}
WEATHER = {"type": "function", "name": "get_weather", "description": "Tells the weather.", "parameters": SCHEMA, "strict": True}
CLOCK = {"type": "function", "name": "clock", "parameters": {"type": "object", "properties": {}, "additionalProperties": False}}
RANDOM = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0}
CALLS = {"tools": [WEATHER, CLOCK], "tool_choice": "required", "max_output_tokens": 2000, "ignore_eos": False, **RANDOM}


def body(**fields):
    return {"model": "tiny", "max_output_tokens": 12, "temperature": 0, "ignore_eos": True, "input": "hello there", **fields}


def ask(server, **fields):
    return server.good(RESPONSES, body(**fields))


def chat(server, messages, **fields):
    return server.good(CHAT, {"max_tokens": 12, "temperature": 0, "ignore_eos": True, "messages": messages, **fields})


def streamed(server, **fields):
    status, headers, text = server.ask("POST", RESPONSES, json.dumps(body(stream=True, **fields)))
    assert status == 200 and headers["Content-Type"] == "text/event-stream", text
    return response_of(read_events(text))


def text_of(response):
    return "".join(part["text"] for item in response["output"] if item["type"] == "message" for part in item["content"])


def said(response):
    """A response without its times, its ids and its share of found tokens, which differ between equal requests."""
    output = [{name: value for name, value in item.items() if name not in ("id", "call_id")} for item in response["output"]]
    usage = {name: value for name, value in response["usage"].items() if name != "input_tokens_details"}
    return {**{name: value for name, value in response.items() if name not in ("id", "created_at", "timings")}, "output": output, "usage": usage}


def test_an_answer_is_that_of_a_chat(server):
    rules = "Be brief. " * 40  # several blocks: without packed weights, a block at least is read each time
    answer = chat(server, [{"role": "system", "content": rules}, {"role": "user", "content": "hello there"}])
    response = ask(server, instructions=rules)
    assert response["object"] == "response" and response["id"].startswith("resp_") and response["model"] == "tiny"
    assert text_of(response) == answer["choices"][0]["message"]["content"]
    assert response["status"] == "incomplete" and response["incomplete_details"] == {"reason": "max_output_tokens"}
    usage = response["usage"]
    assert usage["input_tokens"] == answer["usage"]["prompt_tokens"] and usage["output_tokens"] == 12
    assert usage["total_tokens"] == usage["input_tokens"] + 12
    assert 0 < usage["input_tokens_details"]["cached_tokens"] < usage["input_tokens"], "the chat has read the same prompt"
    assert response["winnow"] == answer["winnow"] and response["store"] is False and response["max_output_tokens"] == 12


@pytest.mark.parametrize(
    "fields",
    [{}, {"instructions": "Be brief."}, {"include": ["message.output_text.logprobs"], "top_logprobs": 2}, {**CALLS, "seed": 7}, {"metadata": {"a": "b"}, "store": True}],
)
def test_a_stream_makes_the_whole_response(server, fields):
    assert said(streamed(server, **fields)) == said(ask(server, **fields))


def test_an_answer_that_is_not_cut_is_completed(server):
    schema = {"type": "json_schema", "name": "town", "schema": SCHEMA, "strict": True}
    for response in (ask(server, text={"format": schema}, max_output_tokens=200), streamed(server, text={"format": schema}, max_output_tokens=200)):
        assert response["status"] == "completed" and response["incomplete_details"] is None
        assert json.loads(text_of(response))["town"] in ("Kyiv", "Lviv")


def test_calls(server):
    names, counts = set(), set()
    for seed in range(20):
        output = ask(server, **CALLS, seed=seed)["output"]
        assert all(item["type"] == "function_call" and item["call_id"] and item["status"] == "completed" for item in output)
        for item in output:
            arguments = json.loads(item["arguments"])
            assert arguments == {} if item["name"] == "clock" else list(arguments) == ["town"]
        names |= {item["name"] for item in output}
        counts.add(len(output))
    assert names == {"get_weather", "clock"} and max(counts) > 1
    assert [len(ask(server, **CALLS, parallel_tool_calls=False, seed=seed)["output"]) for seed in range(5)] == [1] * 5
    allowed = {"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "clock"}]}
    for choice in ({"type": "function", "name": "clock"}, allowed):
        assert {item["name"] for item in ask(server, **{**CALLS, "tool_choice": choice})["output"]} == {"clock"}


def test_items_are_those_of_a_chat(server):
    """A conversation of items gets the same answer as the same conversation by chat completions."""
    items = [
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        {"role": "user", "content": [{"type": "input_text", "text": "first"}, {"type": "input_text", "text": "second"}]},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hm"}], "encrypted_content": "x"},
        {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [{"type": "output_text", "text": "so", "annotations": []}]},
        {"type": "function_call", "call_id": "t1", "name": "get_weather", "arguments": '{"town":"Kyiv","a":[1]}'},
        {"type": "function_call", "call_id": "t2", "name": "clock", "arguments": ""},
        {"type": "function_call_output", "call_id": "t1", "output": "sunny"},
        {"type": "function_call_output", "call_id": "t2", "output": [{"type": "input_text", "text": "noon"}]},
        {"type": "web_search_call", "id": "ws_1", "status": "completed"},
        {"role": "user", "content": "and now?"},
    ]
    function = [{"name": "get_weather", "arguments": '{"town":"Kyiv","a":[1]}'}, {"name": "clock", "arguments": "{}"}]
    messages = [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]},
        {"role": "assistant", "content": "so", "tool_calls": [{"id": f"t{i}", "type": "function", "function": one} for i, one in enumerate(function)]},
        {"role": "tool", "tool_call_id": "t1", "content": "sunny"},
        {"role": "tool", "tool_call_id": "t2", "content": "noon"},
        {"role": "user", "content": "and now?"},
    ]
    answer, response = chat(server, messages), ask(server, input=items)
    assert response["usage"]["input_tokens"] == answer["usage"]["prompt_tokens"]
    assert text_of(response) == answer["choices"][0]["message"]["content"]
    assert server.said().count("input of the type web_search_call is not supported, and is ignored") == 1


def test_the_answer_of_a_response_goes_on_as_its_input(server):
    first = ask(server, **CALLS)
    outputs = [{"type": "function_call_output", "call_id": item["call_id"], "output": "{}"} for item in first["output"]]
    assert text_of(ask(server, input=[{"role": "user", "content": "hello there"}, *first["output"], *outputs]))


def test_tools_that_are_no_functions_are_left_out(server):
    others = [{"type": "web_search"}, {"type": "custom", "name": "apply_patch"}, {"type": "namespace", "name": "mcp", "tools": []}]
    assert ask(server, tools=others)["usage"]["input_tokens"] == ask(server)["usage"]["input_tokens"] < ask(server, tools=[*others, WEATHER])["usage"]["input_tokens"]
    for tool in others:
        assert server.said().count(f"tools of the type {tool['type']} are not supported, and are ignored") == 1


def test_log_probabilities_are_those_of_a_chat(server):
    wanted = chat(server, [{"role": "user", "content": "hello there"}], logprobs=True, top_logprobs=2)["choices"][0]["logprobs"]["content"]
    (item,) = ask(server, include=["message.output_text.logprobs"], top_logprobs=2)["output"]
    assert item["content"][0]["logprobs"] == wanted


def test_stored_tokens_are_counted(server):
    keeping = {"winnow": {"protocol": "question-agnostic", "kv": "streaming-llm", "budget": 64}}
    for question in ("one?", "two?"):
        response = ask(server, instructions="words " * 100, input=question, **keeping)
    assert response["usage"]["input_tokens_details"]["cached_tokens"] > 100 and response["winnow"]["spec"] == "streaming-llm"


REFUSED = [
    ({"input": None}, "input", "is missing"),
    ({"input": []}, "input", "no message to answer"),
    ({"input": [5]}, "input[0]", "an object"),
    ({"input": [{"role": "user"}]}, "input[0].content", "is missing"),
    ({"input": [{"content": "a"}]}, "input[0].role", "is missing"),
    ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "x"}]}]}, "input[0].content[0].type", "is input_image: winnow supports input_text"),
    ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type", "items are not stored"),
    ({"input": [{"type": "function_call", "call_id": "a", "name": "b", "arguments": "{"}]}, "input[0].arguments", "cannot be read"),
    ({"input": [{"type": "function_call_output", "output": "b"}]}, "input[0].call_id", "is missing"),
    ({"previous_response_id": "resp_1"}, "previous_response_id", "responses are not stored"),
    ({"conversation": "conv_1"}, "conversation", "conversations are not stored"),
    ({"prompt": {"id": "p"}}, "prompt", "prompts are not stored"),
    ({"background": True}, "background", "not stored"),
    ({"tools": [{"name": "a"}]}, "tools[0].type", "is missing"),
    ({"tools": [{"type": "function", "name": "a b"}]}, "tools[0].name", "letters"),
    ({"tools": [CLOCK], "tool_choice": {"type": "function", "name": "other"}}, "tool_choice.name", "not one of the tools"),
    ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
    ({"tool_choice": {"type": "file_search"}}, "tool_choice.type", "one of function, allowed_tools"),
    ({"text": {"format": {"type": "xml"}}}, "text.format.type", "one of"),
    ({"text": {"format": {"type": "json_schema"}}}, "text.format.schema", "is missing"),
    ({"max_output_tokens": -1}, "max_output_tokens", "a whole number"),
    ({"metadata": {f"k{i}": "v" for i in range(17)}}, "metadata", "at most 16"),
    ({"winnow": {"kv": "snapky"}}, "winnow.kv", "did you mean snapkv"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fields, field, part", REFUSED)
def test_what_cannot_be_is_refused(server, fields, field, part, stream):
    status, reply = server.post(RESPONSES, body(**fields, stream=stream))
    assert status == 400 and sentence(reply, part)["param"] == field, reply


def test_a_prompt_that_is_too_long_is_told_where_clients_look_for_it(model):
    with Server(model, "--context", "100") as small:
        status, reply = small.post(RESPONSES, body(input="words " * 60))
        error = sentence(reply, "exceeds the available context size of 100 tokens")
        assert status == 400 and error["code"] == "context_length_exceeded" and error["param"] == "input"
        failed = streamed(small, input="words " * 60)
        assert failed["error"] == {"code": "context_length_exceeded", "message": error["message"]} and failed["output"] == []


def test_errors_outside_of_the_body(model):
    with Server(model, "--api-key", "secret") as one:
        status, reply = one.post(RESPONSES, body())
        assert status == 401 and sentence(reply)["type"] == "authentication_error"
        status, reply = one.get(RESPONSES + "/resp_1", Authorization="Bearer secret")
        assert status == 404 and sentence(reply)["type"] == "not_found_error"


def test_a_stream_that_fails_ends_with_a_failed_response(model):
    """The server shuts down in the middle of an answer."""
    with Server(model, "--context", "100000", "--drain-timeout", "0") as one, one.connect() as running, running.makefile("rb") as stream:
        running.sendall(post_bytes(RESPONSES, body(max_output_tokens=90_000, stream=True)))
        assert read_head(stream)[0] == 200
        while b"output_text.delta" not in stream.readline():
            pass
        one.end()
        last = [line for line in stream.read().split(b"\n") if line.startswith(b"data:")][-1]
        failed = json.loads(last.removeprefix(b"data: "))
        assert failed["type"] == "response.failed" and failed["response"]["status"] == "failed"
        assert failed["response"]["error"]["code"] == "server_is_overloaded" and "shutting down" in failed["response"]["error"]["message"]
