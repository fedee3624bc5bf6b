# SPDX-License-Identifier: Apache-2.0
"""Anthropic's Python client against the server: the client checks answers, the order of a stream's events, and
errors."""

import json

import anthropic
import pytest
from program import PATIENCE
from service import Server, wait_for

USER = {"role": "user", "content": "hello there"}
EXACT = {"ignore_eos": True, "temperature": 0}
RANDOM = {"top_k": 0, "top_p": 1, "min_p": 0, "seed": 3, "temperature": 1.5}
SCHEMA = {"type": "object", "properties": {"town": {"enum": ["Kyiv", "Lviv"]}}, "required": ["town"], "additionalProperties": False}
WEATHER = {"name": "get_weather", "description": "Tells the weather.", "input_schema": SCHEMA}


def client_of(server, key="none", **options):
    return anthropic.Anthropic(base_url=f"http://{server.host}:{server.port}", api_key=key, timeout=PATIENCE, **{"max_retries": 0, **options})


@pytest.fixture(scope="module")
def client(server):
    with client_of(server) as one:
        yield one


def body(**more):
    return {"model": "tiny", "max_tokens": 12, "messages": [USER], "extra_body": EXACT, **more}


def text_of(message):
    return "".join(block.text for block in message.content if block.type == "text")


def test_an_answer_and_its_usage(client):
    message = client.messages.create(**body(system="Be brief."))
    assert message.type == "message" and message.role == "assistant" and message.stop_reason == "max_tokens" and text_of(message)
    counted = client.messages.count_tokens(model="tiny", messages=[USER], system="Be brief.")
    assert message.usage.input_tokens == counted.input_tokens and message.usage.output_tokens == 12
    assert message.usage.cache_read_input_tokens == 0 and message.usage.cache_creation_input_tokens == 0
    assert message.model_extra["winnow"]["spec"] == "full"


def test_a_stream_is_the_answer_in_pieces(client):
    whole = client.messages.create(**body())
    with client.messages.stream(**body()) as stream:
        assert "".join(stream.text_stream) == text_of(whole)
        last = stream.get_final_message()
    assert text_of(last) == text_of(whole) and last.stop_reason == whole.stop_reason and last.usage.output_tokens == whole.usage.output_tokens
    events = [event.type for event in client.messages.create(**body(stream=True))]
    assert events[:2] == ["message_start", "content_block_start"] and events[-3:] == ["content_block_stop", "message_delta", "message_stop"]


def test_calls_and_their_results(client):
    asked = body(tools=[WEATHER], tool_choice={"type": "any"}, max_tokens=2000, extra_body=RANDOM)
    whole = client.messages.create(**asked)
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message()
    for message in (whole, streamed):
        assert message.stop_reason == "tool_use" and {block.name for block in message.content} == {"get_weather"}
        assert all(block.input["town"] in ("Kyiv", "Lviv") for block in message.content)
    assert [block.input for block in streamed.content] == [block.input for block in whole.content]
    results = [{"type": "tool_result", "tool_use_id": block.id, "content": "sunny"} for block in whole.content]
    after = [USER, {"role": "assistant", "content": whole.content}, {"role": "user", "content": results}]
    assert text_of(client.messages.create(**body(messages=after, tools=[WEATHER], tool_choice={"type": "none"})))


def test_a_stop_sequence(client):
    whole = text_of(client.messages.create(**body()))
    stop = whole[len(whole) // 2 :][:2]
    message = client.messages.create(**body(stop_sequences=[stop]))
    assert message.stop_reason == "stop_sequence" and message.stop_sequence == stop and text_of(message) == whole[: whole.index(stop)]


def test_the_beta_messages_are_the_same(client):
    message = client.beta.messages.create(**body(betas=["made-up-2030-01-01"]))
    assert message.content[0].text == text_of(client.messages.create(**body()))


def test_errors_have_their_classes(model):
    with Server(model, "--context", "100", "--api-key", "secret") as one, client_of(one, "secret") as client:
        with pytest.raises(anthropic.BadRequestError) as refused:
            client.messages.create(**body(messages=[{"role": "user", "content": "words " * 60}]))
        assert refused.value.body["error"]["message"].startswith("prompt is too long: ") and refused.value.body["type"] == "error"
        with pytest.raises(anthropic.BadRequestError):
            client.messages.create(**body(messages=[]), stream=True)
        with client_of(one, "guess") as other, pytest.raises(anthropic.AuthenticationError):
            other.messages.create(**body())
        with pytest.raises(anthropic.NotFoundError):
            client.messages.batches.list()


def test_an_answer_that_is_ended_by_the_server_is_an_error(model):
    with Server(model, "--context", "100000", "--drain-timeout", "0") as one, client_of(one) as client:
        events = client.messages.create(**body(max_tokens=90_000, stream=True))
        while next(events).type != "content_block_delta":
            pass
        one.process.terminate()
        with pytest.raises(anthropic.APIStatusError) as failed:
            list(events)
        assert failed.value.body["error"]["type"] == "overloaded_error"


def test_a_stream_that_is_closed_ends_its_request(server, client):
    stream = client.messages.create(**body(max_tokens=90_000, stream=True))
    next(iter(stream))
    wait_for(lambda: len(server.get("/slots")[1]) == 1)
    stream.close()
    server.wait_until_idle()


def test_json_by_a_schema(client):
    message = client.messages.create(**body(max_tokens=200, output_config={"format": {"type": "json_schema", "schema": SCHEMA}}))
    assert json.loads(text_of(message))["town"] in ("Kyiv", "Lviv")
