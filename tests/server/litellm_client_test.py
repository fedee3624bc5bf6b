# SPDX-License-Identifier: Apache-2.0
"""LiteLLM as a library against the server, by each of its APIs: chat completions, messages and responses."""

import asyncio
import json

import litellm
import pytest
from program import PATIENCE
from service import Server

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}]
SCHEMA = {"type": "object", "properties": {"town": {"type": "string", "enum": ["Kyiv", "Lviv"]}}, "required": ["town"], "additionalProperties": False}
WEATHER = {"type": "function", "function": {"name": "get_weather", "description": "Tells the weather.", "parameters": SCHEMA}}
LENGTH = 16  # of answers: LiteLLM's minimum for responses
CALL = {"tools": [WEATHER], "parallel_tool_calls": False, "max_tokens": 3000}
NAMED = {"type": "function", "function": {"name": "get_weather"}}
FORM = {"type": "json_schema", "json_schema": {"name": "report", "schema": SCHEMA, "strict": True}}
every_route = pytest.mark.parametrize("route", ["openai/tiny", "openai/responses/tiny", "anthropic/tiny", "hosted_vllm/tiny"])


def options(server, route, **more):
    version = "" if route.startswith("anthropic/") else "/v1"
    return {"model": route, "api_base": f"http://{server.host}:{server.port}{version}", "api_key": "none", "num_retries": 0, "timeout": PATIENCE, **more}


def complete(server, route, **more):
    return litellm.completion(**options(server, route, **{"messages": MESSAGES, "max_tokens": LENGTH, **more}))


def streamed(server, route, **more):
    """The chunks of an answer, joined as LiteLLM does."""
    chunks = list(complete(server, route, stream=True, stream_options={"include_usage": True}, **more))
    assert len(chunks) > 2
    return litellm.stream_chunk_builder(chunks)


@pytest.fixture(scope="module")
def alone(server):
    """The answer to the same request without LiteLLM."""
    return server.good("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": LENGTH})


def text_of(reply):
    return reply["choices"][0]["message"]["content"]


@every_route
def test_an_answer_whole_and_in_a_stream(server, alone, route):
    for ask in (complete, streamed):
        answer = ask(server, route)
        assert answer.choices[0].message.content == text_of(alone)
        # LiteLLM reports every end of a Responses stream as "stop"
        assert answer.choices[0].finish_reason == ("stop" if ask == streamed and "responses" in route else "length")
        assert answer.usage.prompt_tokens == alone["usage"]["prompt_tokens"] and answer.usage.completion_tokens == LENGTH


@every_route
@pytest.mark.parametrize("choice", ["required", NAMED], ids=["required", "named"])
def test_calls_and_their_results(server, route, choice):
    answers = [ask(server, route, tool_choice=choice, **CALL) for ask in (complete, streamed)]
    towns, texts = [], []
    for answer in answers:
        message = answer.choices[0].message
        (call,) = message.tool_calls
        assert answer.choices[0].finish_reason == "tool_calls" and call.function.name == "get_weather"
        towns.append(json.loads(call.function.arguments)["town"])
        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        texts.append(text_of(complete(server, route, messages=[*MESSAGES, message.model_dump(), result], tools=[WEATHER])))
    assert towns[0] in ("Kyiv", "Lviv") and towns[0] == towns[1] and texts[0] and texts[0] == texts[1]


@every_route
def test_an_output_by_a_schema(server, route):
    (choice,) = complete(server, route, response_format=FORM, max_tokens=3000).choices
    assert json.loads(choice.message.content)["town"] in ("Kyiv", "Lviv") and choice.finish_reason == "stop"


@every_route
def test_a_prompt_that_is_too_long_has_its_exception(model, route):
    with Server(model, "--context", "300") as small, pytest.raises(litellm.ContextWindowExceededError):
        complete(small, route, messages=[{"role": "user", "content": "many words " * 40}])


def test_responses(server, alone):
    asked = options(server, "openai/tiny", input="hello there", instructions="Be brief.", max_output_tokens=LENGTH)
    whole = litellm.responses(**asked)
    events = list(litellm.responses(**asked, stream=True))
    assert whole.output[0].content[0].text == text_of(alone) and whole.status == "incomplete" and whole.usage.output_tokens == LENGTH
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == text_of(alone)
    assert events[-1].response.status == "incomplete" and events[-1].response.usage.output_tokens == LENGTH


def test_messages(server, alone):
    asked = options(server, "anthropic/tiny", messages=MESSAGES[1:], system="Be brief.", max_tokens=LENGTH)
    message = asyncio.run(litellm.anthropic.messages.acreate(**asked))
    assert message["content"][0]["text"] == text_of(alone) and message["stop_reason"] == "max_tokens" and message["usage"]["output_tokens"] == LENGTH


def test_embeddings(server):
    answer = litellm.embedding(**options(server, "openai/tiny", input=["hello there", "and you?"]))
    assert [len(one["embedding"]) for one in answer.data] == [64, 64] and answer.usage.prompt_tokens > 0
