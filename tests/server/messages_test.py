# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Messages API: fields, the order of events, and the form of errors."""

import json

import pytest
from message_events import message_of, read_events
from service import Server, post_bytes, read_head, tokens_of_message

MESSAGES, COUNT, CHAT = "/v1/messages", "/v1/messages/count_tokens", "/v1/chat/completions"
USER = {"role": "user", "content": "hello there"}
SCHEMA = {"type": "object", "properties": {"town": {"enum": ["Kyiv", "Lviv"]}}, "required": ["town"], "additionalProperties": False}
WEATHER = {"name": "get_weather", "description": "Tells the weather.", "input_schema": SCHEMA}
CLOCK = {"type": "custom", "name": "clock", "input_schema": {"type": "object", "properties": {}, "additionalProperties": False}}
RANDOM = {"temperature": 1.5, "top_k": 0, "top_p": 1, "min_p": 0}


def body(**fields):
    return {"model": "tiny", "max_tokens": 12, "temperature": 0, "ignore_eos": True, "messages": [USER], **fields}


def ask(server, **fields):
    return server.good(MESSAGES, body(**fields))


def streamed(server, **fields):
    """The message that a stream's events add up to, and the events."""
    status, headers, text = server.ask("POST", MESSAGES, json.dumps(body(stream=True, **fields)))
    assert status == 200 and headers["Content-Type"] == "text/event-stream", text
    events = read_events(text)
    return message_of(events), events


def refused(server, status, kind, path=MESSAGES, /, **fields):
    """The message of an error, which must have this API's form."""
    got, reply = server.post(path, body(**fields))
    assert got == status and reply.keys() == {"type", "error"} and reply["type"] == "error", reply
    assert reply["error"].keys() == {"type", "message"} and reply["error"]["type"] == kind, reply
    assert "\n" not in reply["error"]["message"]
    return reply["error"]["message"]


def said(message):
    """A message without its times, its ids and its share of found tokens, which differ between equal requests."""
    content = [{name: value for name, value in block.items() if name != "id"} for block in message["content"]]
    rest = {name: value for name, value in message.items() if name not in ("id", "timings", "usage")}
    return {**rest, "content": content, "usage": [tokens_of_message(message), message["usage"]["output_tokens"]]}


def prompt_tokens(server, **fields):
    return server.good(COUNT, {"model": "tiny", "messages": [USER], **fields})["input_tokens"]


def test_an_answer_is_that_of_a_chat(server):
    rules = "Be brief. " * 20
    chat = server.good(CHAT, {**body(), "messages": [{"role": "system", "content": rules}, USER]})
    message = ask(server, system=rules)
    assert message["type"] == "message" and message["role"] == "assistant" and message["model"] == "tiny" and message["id"].startswith("msg_")
    assert message["content"] == [{"type": "text", "text": chat["choices"][0]["message"]["content"]}]
    assert message["stop_reason"] == "max_tokens" and message["stop_sequence"] is None
    tokens = chat["usage"]["prompt_tokens"]
    found = message["usage"]["cache_read_input_tokens"]
    assert message["usage"] == {"input_tokens": tokens - found, "cache_creation_input_tokens": 0, "cache_read_input_tokens": found, "output_tokens": 12}
    assert 0 < found < tokens, "the chat has read the same prompt"
    assert message["winnow"] == chat["winnow"]


@pytest.mark.parametrize("fields", [{}, {"system": "Be brief."}, {"tools": [WEATHER, CLOCK], "tool_choice": {"type": "any"}, **RANDOM, "seed": 7, "max_tokens": 2000, "ignore_eos": False}])
def test_a_stream_makes_the_whole_message(server, fields):
    message, events = streamed(server, **fields)
    assert said(message) == said(ask(server, **fields))
    assert [event["type"] for event in events][:2] == ["message_start", "ping"]


def test_calls(server):
    fields = {"tools": [WEATHER, CLOCK], "tool_choice": {"type": "any"}, "max_tokens": 2000, "ignore_eos": False, **RANDOM}
    names, counts = set(), set()
    for seed in range(20):
        message = ask(server, **fields, seed=seed)
        assert message["stop_reason"] == "tool_use" and all(block["type"] == "tool_use" and block["id"] for block in message["content"])
        for block in message["content"]:
            assert block["input"] == {} if block["name"] == "clock" else list(block["input"]) == ["town"]
        names |= {block["name"] for block in message["content"]}
        counts.add(len(message["content"]))
        assert len({block["id"] for block in message["content"]}) == len(message["content"])
    assert names == {"get_weather", "clock"} and max(counts) > 1
    one = [len(ask(server, **{**fields, "tool_choice": {"type": "any", "disable_parallel_tool_use": True}}, seed=seed)["content"]) for seed in range(5)]
    assert one == [1] * 5
    named = ask(server, **{**fields, "tool_choice": {"type": "tool", "name": "clock"}})
    assert [block["name"] for block in named["content"]] == ["clock"]


def test_none_and_the_tools_of_other_servers_leave_the_prompt_as_it_is(server):
    plain = prompt_tokens(server)
    assert prompt_tokens(server, tools=[WEATHER]) > plain
    assert prompt_tokens(server, tools=[WEATHER], tool_choice={"type": "none"}) == plain
    assert prompt_tokens(server, tools=[{"type": "web_search_20250305", "name": "web_search"}]) == plain
    # Counting tokens does not warn.
    assert "tools of the type web_search_20250305 are not supported, and are ignored" not in server.said()
    ask(server, tools=[{"type": "web_search_20250305", "name": "web_search"}])
    assert server.said().count("tools of the type web_search_20250305 are not supported, and are ignored") == 1


def test_a_stop_sequence_is_named(server):
    whole = ask(server)["content"][0]["text"]
    stop = whole[len(whole) // 2 :][:2]
    for message in (ask(server, stop_sequences=["\x00 never", stop]), streamed(server, stop_sequences=["\x00 never", stop])[0]):
        assert message["stop_reason"] == "stop_sequence" and message["stop_sequence"] == stop
        assert "".join(block["text"] for block in message["content"]) == whole[: whole.index(stop)]


def test_count_tokens_is_what_an_answer_reads(server):
    for fields in ({}, {"system": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, {"tools": [WEATHER]}):
        assert tokens_of_message(ask(server, **fields)) == prompt_tokens(server, **fields)


def test_blocks_are_those_of_a_chat(server):
    """A conversation with tool results has the same tokens as the same conversation by chat completions."""
    turns = [
        {"role": "user", "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second", "cache_control": {"type": "ephemeral"}}]},
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"},
                                          {"type": "text", "text": "so"}, {"type": "tool_use", "id": "t1", "name": "get_weather", "input": {"town": "Kyiv", "a": [1]}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": [{"type": "text", "text": "sunny"}]}, {"type": "text", "text": "and now?"}]},
    ]
    call = {"id": "t1", "type": "function", "function": {"name": "get_weather", "arguments": '{"town":"Kyiv","a":[1]}'}}
    chat = [
        {"role": "user", "content": [{"type": "text", "text": "first"}, {"type": "text", "text": "second"}]},
        {"role": "assistant", "content": "so", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "t1", "content": "sunny"},
        {"role": "user", "content": "and now?"},
    ]
    both = server.good(CHAT, {**body(), "messages": chat}), ask(server, messages=turns)
    assert both[0]["usage"]["prompt_tokens"] == tokens_of_message(both[1])
    assert both[0]["choices"][0]["message"]["content"] == both[1]["content"][0]["text"]


def test_a_last_message_of_the_assistant_is_gone_on_with(server):
    begun = [USER, {"role": "assistant", "content": "The answer is"}]
    chat = server.good(CHAT, {**body(), "messages": begun, "continue_final_message": True, "add_generation_prompt": False})
    assert ask(server, messages=begun)["content"][0]["text"] == chat["choices"][0]["message"]["content"]


def test_blocks_that_only_carry_billing_headers_are_left_out(server):
    billing = [{"type": "text", "text": f"x-anthropic-billing-header: cc_version=2.1; cch={n}"} for n in range(2)]
    said = {"type": "text", "text": "Be brief."}
    assert prompt_tokens(server, system=[billing[0], said]) == prompt_tokens(server, system=[said]) == prompt_tokens(server, system="Be brief.")
    assert prompt_tokens(server, system=[billing[0]]) == prompt_tokens(server)
    more = {"type": "text", "text": billing[0]["text"] + "\nBe brief."}
    assert prompt_tokens(server, system=[more]) > prompt_tokens(server, system=[said])
    keeping = {"winnow": {"protocol": "question-agnostic", "kv": "streaming-llm", "budget": 64}}
    texts = [{"type": "text", "text": "words " * 100}]
    ask(server, system=[billing[0], *texts], **keeping)
    usage = ask(server, system=[billing[1], *texts], messages=[{"role": "user", "content": "another"}], **keeping)["usage"]
    assert usage["cache_read_input_tokens"] > 100 and usage["input_tokens"] < 100


def test_winnow_chooses_how_a_prompt_is_kept(server):
    long = {"role": "user", "content": "many words " * 20}
    message = ask(server, messages=[long], winnow={"kv": "snapkv:window=8", "budget": 16})
    assert message["winnow"]["spec"] == "snapkv:window=8" and message["winnow"]["entries_per_head"] == 16
    assert "did you mean snapkv" in refused(server, 400, "invalid_request_error", winnow={"kv": "snapky"})


def test_a_schema_for_the_answer(server):
    schema = {"type": "object", "properties": {"town": {"enum": ["Kyiv"]}}, "required": ["town"], "additionalProperties": False}
    message = ask(server, output_config={"format": {"type": "json_schema", "schema": schema}}, max_tokens=200)
    assert json.loads(message["content"][0]["text"]) == {"town": "Kyiv"}


REFUSED = [
    ({"messages": []}, "messages"),
    ({"messages": [{"role": "user"}]}, "messages[0].content"),
    ({"messages": [{"content": "a"}]}, "messages[0].role"),
    ({"messages": [{"role": "tool", "content": "a"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]}, "messages[0].content[0].type is image: winnow supports text"),
    ({"messages": [{"role": "user", "content": [{"text": "a"}]}]}, "messages[0].content[0].type"),
    ({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "b"}]}]}, "messages[0].content[0].input"),
    ({"messages": [{"role": "user", "content": [{"type": "tool_result", "content": "b"}]}]}, "messages[0].content[0].tool_use_id"),
    ({"system": [{"type": "image"}]}, "system[0].type"),
    ({"tools": [{"name": "a"}]}, "tools[0].input_schema"),
    ({"tools": [{"name": "a b", "input_schema": {}}]}, "tools[0].name"),
    ({"tools": [CLOCK, CLOCK]}, "tools has the function clock twice"),
    ({"tools": [CLOCK], "tool_choice": {"type": "tool", "name": "other"}}, "tool_choice.name is other"),
    ({"tool_choice": {"type": "any"}}, "there are no tools"),
    ({"tool_choice": {"type": "maybe"}}, "tool_choice.type"),
    ({"stop_sequences": [5]}, "stop_sequences[0]"),
    ({"stop_sequences": ["a"] * 65}, "at most 64"),
    ({"temperature": -1}, "temperature"),
    ({"max_tokens": "many"}, "max_tokens"),
    ({"thinking": {"type": 5}}, "thinking.type"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fields, part", REFUSED)
def test_what_cannot_be_is_refused(server, fields, part, stream):
    assert part in refused(server, 400, "invalid_request_error", **fields, stream=stream)


def test_sessions_and_documents_go_with_messages(model, work):
    with Server(model, "--context", "10000", "--sessions", f"{work}/sessions", "--documents", f"{work}/shelf") as one:
        first = ask(one, winnow={"session": "a"})
        history = [USER, {"role": "assistant", "content": first["content"]}, {"role": "user", "content": "and?"}]
        second = ask(one, messages=history[-1:], winnow={"session": "a"})
        assert second["content"] == ask(one, messages=history, winnow={"protocol": "question-agnostic"})["content"]
        assert [message["role"] for message in one.get("/v1/sessions/a")[1]["messages"]] == ["user", "assistant"] * 2
        one.good("/v1/documents", {"name": "d", "text": "some words " * 9})
        asked = {"winnow": {"documents": ["d"]}}
        assert ask(one, **asked)["content"][0]["text"] == one.good(CHAT, {**body(), **asked})["choices"][0]["message"]["content"]
        assert "messages must be one message of the user" in refused(one, 400, "invalid_request_error", system="a", **asked)


def test_a_prompt_that_is_too_long_has_the_sentence_that_clients_look_for(model):
    with Server(model, "--context", "100") as small:
        tokens = prompt_tokens(small, messages=[{"role": "user", "content": "words " * 60}])
        assert refused(small, 400, "invalid_request_error", messages=[{"role": "user", "content": "words " * 60}]) == f"prompt is too long: {tokens} tokens > 99 maximum"


def test_errors_outside_of_the_body(model):
    with Server(model, "--api-key", "secret", "--max-body", "4KiB") as one:
        refused(one, 401, "authentication_error")
        for headers in ({"X_Api_Key": "secret"}, {"Authorization": "Bearer secret"}):
            assert one.good(MESSAGES + "?beta=true", body(), **headers, Anthropic_Version="2023-06-01", Anthropic_Beta="made-up-2030-01-01")["type"] == "message"
        status, reply = one.post(MESSAGES + "/batches", {}, X_Api_Key="secret")
        assert status == 404 and reply["error"]["type"] == "not_found_error" and reply["type"] == "error"
        assert one.get(MESSAGES, X_Api_Key="secret")[1]["error"]["type"] == "invalid_request_error"
        status, reply = one.post(MESSAGES, body(system="a" * 5000), X_Api_Key="secret")
        assert status == 413 and reply["error"]["type"] == "request_too_large"
        status, reply = one.post(MESSAGES, "{", X_Api_Key="secret")
        assert status == 400 and reply["error"]["type"] == "invalid_request_error"
        assert one.post(CHAT, {}, X_Api_Key="secret")[1]["error"].keys() == {"message", "type", "param", "code"}


def test_too_many_requests_are_told_when_to_come_again(model):
    with Server(model, "--context", "100000", "--parallel", "1", "--max-queue-requests", "0") as one:
        with one.connect() as running, running.makefile("rb") as stream:
            running.sendall(post_bytes(MESSAGES, body(max_tokens=90_000, stream=True)))
            assert read_head(stream)[0] == 200
            status, headers, reply = one.ask("POST", MESSAGES, json.dumps(body()))
            assert status == 429 and json.loads(reply)["error"]["type"] == "rate_limit_error" and 1 <= int(headers["Retry-After"]) <= 120
        one.wait_until_idle()


def test_a_stream_that_fails_ends_with_an_error(model):
    """The server shuts down in the middle of an answer."""
    with Server(model, "--context", "100000", "--drain-timeout", "0") as one, one.connect() as running, running.makefile("rb") as stream:
        running.sendall(post_bytes(MESSAGES, body(max_tokens=90_000, stream=True)))
        assert read_head(stream)[0] == 200
        while b"text_delta" not in stream.readline():
            pass
        one.end()
        last = [line for line in stream.read().split(b"\n") if line.startswith((b"event:", b"data:"))][-2:]
        assert last[0] == b"event: error"
        error = json.loads(last[1].removeprefix(b"data: "))
        assert error["type"] == "error" and error["error"]["type"] == "overloaded_error" and "shutting down" in error["error"]["message"]
