# SPDX-License-Identifier: Apache-2.0
"""Thinking: it ends at its budget, is separated from the answer, and is counted.

TEMPLATES=FOLDER names llama.cpp's collection of chat templates.
"""

import json
import os
import pathlib

import pytest
from message_events import message_of, read_events
from response_events import read_events as read_response_events
from response_events import response_of
from service import Server, sentence, tokens_of_message

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
FOLDER = pathlib.Path(os.environ["TEMPLATES"])
TEMPLATES = sorted(path.stem for path in FOLDER.glob("*.jinja"))
QUESTION = [{"role": "user", "content": "hello"}]
LETTERS = {"logit_bias": {"100": 100, "101": 100}, "temperature": 1}  # the tiny model has a token for each byte
END = len("</think>")


def server_with(model, stem, *options):
    return Server(model, "--context", "100000", "--chat-template", str(FOLDER / f"{stem}.jinja"), *options)


@pytest.fixture(scope="module")
def server(model):
    """The template opens each answer with <think> and a line feed, which the model does not generate."""
    with server_with(model, "Qwen-QwQ-32B") as one:
        yield one
        one.wait_until_idle()


def chat(server, **fields):
    reply = server.good(CHAT, {"messages": QUESTION, "max_tokens": 60, **LETTERS, **fields})
    message, usage = reply["choices"][0]["message"], reply["usage"]
    assert message.get("reasoning") == message.get("reasoning_content")
    return message.get("reasoning", ""), message["content"], usage["completion_tokens_details"]["reasoning_tokens"]


def response(server, **fields):
    reply = server.good(RESPONSES, {"input": "hello", "max_output_tokens": 60, **LETTERS, **fields})
    return *texts_of(reply), reply["usage"]["output_tokens_details"]["reasoning_tokens"]


def texts_of(response):
    return ["".join(part["text"] for item in response["output"] if item["type"] == kind for part in item["content"]) for kind in ("reasoning", "message")]


def message(server, budget):
    thinking = {} if budget is None else {"thinking": {"type": "enabled", "budget_tokens": budget}}
    reply = server.good(MESSAGES, {"messages": QUESTION, "max_tokens": 60, **LETTERS, **thinking})
    return blocks_of(reply)


def blocks_of(message):
    return ["".join(block.get(kind, "") for block in message["content"]) for kind in ("thinking", "text")]


def check(thought, content, tokens, budget):
    assert (len(thought), len(content), tokens) == (budget, 60 - END - budget, budget) and set(thought + content) <= {"a", "b"}


@pytest.mark.parametrize("budget", [0, 1, 9, 40])
def test_thinking_has_its_tokens_and_then_the_answer_goes_on(server, budget):
    for name in ("thinking_token_budget", "thinking_budget_tokens", "reasoning_budget_tokens"):
        check(*chat(server, **{name: budget}), budget)
        check(*response(server, **{name: budget}), budget)
    thought, text = message(server, budget)
    check(thought, text, len(thought), budget)


def test_thinking_without_a_limit_takes_all_tokens(server):
    for fields in ({}, {"thinking_budget_tokens": -1}, {"reasoning_budget_tokens": 60}):
        thought, content, tokens = chat(server, **fields)
        assert (len(thought), content, tokens) == (60, "", 60)
    assert [len(text) for text in message(server, None)] == [60, 0]


def test_each_of_several_answers_has_its_own_tokens(server):
    reply = server.good(CHAT, {"messages": QUESTION, "max_tokens": 30, **LETTERS, "n": 3, "thinking_token_budget": 5, "seed": 1})
    assert [len(choice["message"]["reasoning"]) for choice in reply["choices"]] == [5, 5, 5]
    assert reply["usage"]["completion_tokens_details"] == {"reasoning_tokens": 15}


def test_streams_tell_the_same(server):
    fields = {"thinking_token_budget": 9, "seed": 3}
    events = server.stream(CHAT, {"messages": QUESTION, "max_tokens": 60, **LETTERS, **fields, "stream_options": {"include_usage": True}})
    deltas = [choice["delta"] for event in events for choice in event["choices"]]
    assert all(delta.get("reasoning") == delta.get("reasoning_content") for delta in deltas)
    told = ["".join(delta.get(name, "") for delta in deltas) for name in ("reasoning", "content")]
    assert (*told, events[-1]["usage"]["completion_tokens_details"]["reasoning_tokens"]) == chat(server, **fields)
    asked = {"input": "hello", "max_output_tokens": 60, **LETTERS, **fields, "stream": True}
    told = response_of(read_response_events(server.ask("POST", RESPONSES, json.dumps(asked))[2]))
    assert texts_of(told) == list(response(server, **fields)[:2]) and told["usage"]["output_tokens_details"]["reasoning_tokens"] == 9
    asked = {"messages": QUESTION, "max_tokens": 60, **LETTERS, "seed": 3, "stream": True, "thinking": {"type": "enabled", "budget_tokens": 9}}
    told = blocks_of(message_of(read_events(server.ask("POST", MESSAGES, json.dumps(asked))[2])))
    assert told == list(chat(server, **fields)[:2])


def test_a_call_comes_after_the_thinking(server):
    parameters = {"type": "object", "properties": {"town": {"enum": ["Kyiv"]}}, "required": ["town"], "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
    reply = server.good(CHAT, {"messages": QUESTION, "tools": tools, "tool_choice": "required", "max_tokens": 400, "temperature": 1, "seed": 1, "thinking_token_budget": 6})
    said = reply["choices"][0]["message"]
    assert json.loads(said["tool_calls"][0]["function"]["arguments"]) == {"town": "Kyiv"} and said["reasoning"]


def test_a_limit_that_cannot_be_is_refused(server):
    for name in ("thinking_token_budget", "thinking_budget_tokens", "reasoning_budget_tokens"):
        for value in (-2, 1.5, "5"):
            status, reply = server.post(CHAT, {"messages": QUESTION, name: value})
            assert status == 400 and sentence(reply)["param"] == name
    status, reply = server.post(MESSAGES, {"messages": QUESTION, "max_tokens": 5, "thinking": {"type": "enabled", "budget_tokens": -1}})
    assert status == 400 and "thinking.budget_tokens" in reply["error"]["message"]


def test_a_limit_without_thinking_is_named_once(model):
    with Server(model) as plain:
        for _ in range(2):
            plain.good(CHAT, {"messages": QUESTION, "max_tokens": 5, "thinking_token_budget": 3})
        assert plain.said().count("has no thinking") == 1


def prompt_of(server, **fields):
    return server.good("/apply-template", {"messages": QUESTION, **fields})["prompt"]


def prompt_tokens(server, path, **fields):
    if path == RESPONSES:
        return server.good(path, {"input": "hello", "max_output_tokens": 1, **fields})["usage"]["input_tokens"]
    return tokens_of_message(server.good(path, {"messages": QUESTION, "max_tokens": 1, **fields}))


@pytest.mark.parametrize("stem, effort, sign", [("openai-gpt-oss-120b", "high", "Reasoning: high"), ("Qwen-Qwen3-0.6B", "none", "<think>\n\n</think>"), ("Qwen-Qwen3-0.6B", "low", "")])
def test_the_effort_is_the_templates(model, stem, effort, sign):
    with server_with(model, stem) as one:
        asked = prompt_of(one, reasoning_effort=effort)
        assert sign in asked and (not sign or sign not in prompt_of(one))
        tokens = one.good("/tokenize", {"messages": QUESTION, "reasoning_effort": effort})["count"]
        assert prompt_tokens(one, RESPONSES, reasoning={"effort": effort, "summary": "auto"}) == tokens
        assert prompt_tokens(one, MESSAGES, output_config={"effort": effort}) == tokens
        if effort == "none":
            assert prompt_of(one, chat_template_kwargs={"enable_thinking": False}) == asked
            assert prompt_tokens(one, MESSAGES, thinking={"type": "disabled"}) == tokens


SCHEMA = {"type": "object", "properties": {"town": {"enum": ["Kyiv", "Lviv"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}}, "required": ["town", "days"]}


ENDLESS = {
    "Apriel-1.6-15b-Thinker-fixed": "its tag has a space, which is no token of the tiny model",
    "muse-glimmer": "llama.cpp names no tags of its thinking",
}


@pytest.mark.parametrize("stem", [stem for stem in TEMPLATES if stem not in ENDLESS])
def test_json_comes_by_every_template_after_what_it_thinks(model, stem):
    """A random model would think without end, but still answers in JSON."""
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    with server_with(model, stem) as one:
        asked = {"messages": QUESTION, "response_format": form, "max_tokens": 2000, "temperature": 1, "thinking_token_budget": 4, "n": 4, "seed": 1}
        whole = [choice["message"] for choice in one.good(CHAT, asked)["choices"]]
        for said in whole:
            value = json.loads(said["content"])
            assert list(value) == ["town", "days"] and value["town"] in ("Kyiv", "Lviv") and 1 <= value["days"] <= 9
        pieces = [choice for event in one.stream(CHAT, asked) for choice in event["choices"]]
        for i, said in enumerate(whole):
            assert "".join(piece["delta"].get("content") or "" for piece in pieces if piece["index"] == i) == said["content"]
