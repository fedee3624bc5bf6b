# SPDX-License-Identifier: Apache-2.0
"""OpenAI's client for Python against the server. ctest runs this file once for each major version of the client."""

import asyncio
import json
import pathlib
import subprocess
import sys
import threading

import openai
import pytest
from program import PATIENCE
from service import Server, wait_for

MESSAGES = [{"role": "user", "content": "hello there"}]
SNAPKV = {"winnow": {"kv": "snapkv:window=8", "budget": 16}}


def client_of(server, key="none", **options):
    return openai.OpenAI(base_url=f"http://{server.host}:{server.port}/v1", api_key=key, timeout=PATIENCE, **{"max_retries": 0, **options})


@pytest.fixture(scope="module")
def client(server):
    with client_of(server) as one:
        yield one


@pytest.fixture(scope="module")
def small(model):
    """A client of a server with little context."""
    with Server(model, "--context", "100") as server, client_of(server) as one:
        yield one


def chat(client, **more):
    return client.chat.completions.create(**{"model": "tiny", "messages": MESSAGES, "max_tokens": 12, "temperature": 0, "extra_body": {"ignore_eos": True}, **more})


def complete(client, **more):
    return client.completions.create(**{"model": "tiny", "prompt": "hello there", "max_tokens": 12, "temperature": 0, "extra_body": {"ignore_eos": True}, **more})


def test_models(client):
    (model,) = client.models.list()
    assert model.id == "tiny" and model.owned_by == "winnow" and model.object == "model"


def test_an_answer_and_its_usage(client):
    reply = chat(client)
    (choice,) = reply.choices
    assert choice.message.role == "assistant" and choice.message.content and choice.finish_reason == "length"
    assert reply.object == "chat.completion" and reply.id.startswith("chatcmpl-")
    assert reply.usage.completion_tokens == 12 and reply.usage.total_tokens == 12 + reply.usage.prompt_tokens
    assert reply.usage.prompt_tokens_details.cached_tokens == 0
    reply = complete(client, stop=["\x00 never"])
    assert reply.object == "text_completion" and reply.choices[0].finish_reason == "length" and reply.usage.completion_tokens == 12


def test_a_stream_is_the_answer_in_pieces(client):
    whole = chat(client)
    with chat(client, stream=True) as stream:
        chunks = list(stream)
    first, *middle, last = chunks
    assert first.choices[0].delta.role == "assistant" and first.choices[0].delta.content == ""
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == whole.choices[0].message.content
    assert last.choices[0].finish_reason == "length" and all(chunk.choices[0].finish_reason is None for chunk in middle)
    assert {chunk.id for chunk in chunks} == {first.id} and all(chunk.usage is None for chunk in chunks)
    with complete(client, stream=True) as stream:
        assert "".join(chunk.choices[0].text for chunk in stream) == complete(client).choices[0].text


def test_usage_at_the_end_of_a_stream(client):
    usage = chat(client).usage
    *chunks, last = chat(client, stream=True, stream_options={"include_usage": True})
    assert last.choices == [] and last.usage == usage and all(chunk.usage is None for chunk in chunks)


def test_a_stop_text_ends_a_stream_before_it(client):
    whole = complete(client).choices[0].text
    stop = whole[len(whole) // 2 :][:2]
    chunks = list(complete(client, stream=True, stop=[stop]))
    assert "".join(chunk.choices[0].text for chunk in chunks) == whole[: whole.index(stop)] and chunks[-1].choices[0].finish_reason == "stop"


def test_log_probabilities_of_a_chat(client):
    (choice,) = chat(client, logprobs=True, top_logprobs=3).choices
    assert len(choice.logprobs.content) == 12
    for token in choice.logprobs.content:
        assert token.logprob <= 0 and len(token.top_logprobs) == 3 and token.top_logprobs[0].token == token.token
        assert token.logprob == token.top_logprobs[0].logprob >= token.top_logprobs[1].logprob >= token.top_logprobs[2].logprob
    assert b"".join(bytes(token.bytes) for token in choice.logprobs.content).decode(errors="replace") == choice.message.content
    streamed = [token for chunk in chat(client, logprobs=True, top_logprobs=3, stream=True) if chunk.choices[0].logprobs for token in chunk.choices[0].logprobs.content]
    assert streamed == choice.logprobs.content


def test_log_probabilities_of_a_completion(client):
    (choice,) = complete(client, logprobs=2).choices
    assert len(choice.logprobs.tokens) == len(choice.logprobs.token_logprobs) == len(choice.logprobs.text_offset) == 12
    for token, logprob, top in zip(choice.logprobs.tokens, choice.logprobs.token_logprobs, choice.logprobs.top_logprobs):
        assert logprob <= 0 and top[token] == logprob == max(top.values())


def test_embeddings(client):
    """The client requests base64 by default."""
    both = client.embeddings.create(model="tiny", input=["hello there", "and you?"])
    assert [len(one.embedding) for one in both.data] == [64, 64] and both.usage.prompt_tokens == both.usage.total_tokens > 0
    plain = client.embeddings.create(model="tiny", input="hello there", encoding_format="float")
    assert plain.data[0].embedding == pytest.approx(both.data[0].embedding, abs=1e-7)


def test_a_method_for_each_request(client):
    reply = chat(client, messages=[{"role": "user", "content": "many words " * 20}], extra_body={**SNAPKV, "ignore_eos": True})
    assert reply.model_extra["winnow"]["spec"] == "snapkv:window=8" and reply.model_extra["winnow"]["entries_per_head"] == 16
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, extra_body={"winnow": {"kv": "snapky", "budget": 16}})
    assert refused.value.param == "winnow.kv" and "did you mean snapkv" in str(refused.value)


ERRORS = [
    ({"temperature": -1}, "temperature", None),
    ({"messages": []}, "messages", None),
    ({"max_tokens": "many"}, "max_tokens", None),
    ({"messages": [{"role": "user", "content": "words " * 60}]}, "messages", "context_length_exceeded"),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fields, param, code", ERRORS)
def test_an_error_has_a_type_a_field_and_a_code(small, fields, param, code, stream):
    with pytest.raises(openai.BadRequestError) as refused:
        chat(small, **fields, stream=stream)
    error = refused.value
    assert error.status_code == 400 and error.type == "invalid_request_error" and error.param == param and error.code == code
    assert code is None or "exceeds the available context size" in error.message


def test_a_route_that_is_not_there(client):
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("gpt/9")
    assert refused.value.status_code == 404


def test_a_key(model):
    with Server(model, "--api-key", "secret") as one:
        with client_of(one, "guess") as client, pytest.raises(openai.AuthenticationError) as refused:
            chat(client)
        assert refused.value.status_code == 401 and refused.value.type == "authentication_error"
        with client_of(one, "secret") as client:
            assert chat(client).usage.completion_tokens == 12


def test_too_many_requests_are_tried_again(model):
    """Without retries 429 is an error with Retry-After; with them the client waits, and gets its answer."""
    statuses = []
    with Server(model, "--context", "100000", "--parallel", "1", "--max-queue-requests", "0") as one, client_of(one) as client:
        running = chat(client, max_tokens=90_000, stream=True)
        next(iter(running))
        with pytest.raises(openai.RateLimitError) as refused:
            chat(client)
        assert refused.value.code == "rate_limit_exceeded" and 1 <= int(refused.value.response.headers["retry-after"]) <= 120

        def note(response):
            statuses.append(response.status_code)
            running.close()

        with client_of(one, max_retries=5, http_client=openai.DefaultHttpxClient(event_hooks={"response": [note]})) as patient:
            assert chat(patient).usage.completion_tokens == 12
        assert statuses[0] == 429 and statuses[-1] == 200 and set(statuses) == {429, 200}


def test_a_stream_that_is_closed_ends_its_request(server, client):
    stream = chat(client, max_tokens=90_000, stream=True)
    next(iter(stream))
    wait_for(lambda: len(server.get("/slots")[1]) == 1)
    stream.close()
    server.wait_until_idle()


def test_a_client_that_runs_out_of_patience_ends_its_request(server):
    with client_of(server) as hasty, pytest.raises(openai.APITimeoutError):
        hasty.chat.completions.create(model="tiny", messages=MESSAGES, max_tokens=90_000, extra_body={"ignore_eos": True}, timeout=0.5)
    server.wait_until_idle()


def test_many_at_once_get_what_they_get_alone(server, client):
    prompts = [f"{number} and some words" for number in range(8)]
    alone = [complete(client, prompt=prompt).choices[0].text for prompt in prompts]

    async def ask_all():
        async with openai.AsyncOpenAI(base_url=str(client.base_url), api_key="none", max_retries=0, timeout=PATIENCE) as many:
            tasks = [many.completions.create(model="tiny", prompt=prompt, max_tokens=12, temperature=0, extra_body={"ignore_eos": True}) for prompt in prompts]
            return [reply.choices[0].text for reply in await asyncio.gather(*tasks)]

    assert asyncio.run(ask_all()) == alone


def test_threads_share_a_client(client):
    alone, beside = complete(client).choices[0].text, []
    threads = [threading.Thread(target=lambda: beside.append("".join(chunk.choices[0].text for chunk in complete(client, stream=True)))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert beside == [alone] * 8


def test_the_example_of_the_readme(server, tmp_path):
    """The second question finds the text in the store."""
    example = pathlib.Path(__file__).resolve().parents[2] / "examples/openai_client.py"
    text = tmp_path / "long.txt"
    text.write_text("The ninth ship was called Meridian. " * 20)
    found = []
    for question in ("What was it called?", "Why?"):
        command = [sys.executable, str(example), str(text), question, str(server.port)]
        answer = subprocess.run(command, capture_output=True, text=True, errors="replace", check=True, timeout=PATIENCE).stdout
        assert answer.strip()
        lines = server.ask("GET", "/metrics")[2].decode().splitlines()
        found.append(float(next(line.split()[1] for line in lines if line.startswith("vllm:prefix_cache_hits_total{"))))
    assert found[1] > found[0]


TOWN = {"type": "object", "properties": {"town": {"enum": ["Kyiv", "Lviv"]}}, "required": ["town"], "additionalProperties": False}
TOOL = {"type": "function", "name": "get_weather", "description": "Tells the weather.", "parameters": TOWN, "strict": True}


def respond(client, **more):
    return client.responses.create(**{"model": "tiny", "input": "hello there", "max_output_tokens": 12, "temperature": 0, "extra_body": {"ignore_eos": True}, **more})


def test_a_response_and_its_usage(client):
    response = respond(client, instructions="Be brief.", store=False)
    (message,) = response.output
    assert message.type == "message" and message.role == "assistant" and response.output_text
    assert response.status == "incomplete" and response.incomplete_details.reason == "max_output_tokens"
    assert response.usage.output_tokens == 12 and response.usage.total_tokens == 12 + response.usage.input_tokens


def test_a_stream_of_a_response(client):
    whole = respond(client)
    with respond(client, stream=True) as stream:
        events = list(stream)
    assert [event.sequence_number for event in events] == list(range(len(events)))
    assert "".join(event.delta for event in events if event.type == "response.output_text.delta") == whole.output_text
    assert events[-1].type == "response.incomplete" and events[-1].response.output_text == whole.output_text


def test_calls_in_a_response(client):
    asked = {"tools": [TOOL], "tool_choice": "required", "max_output_tokens": 2000, "extra_body": {"top_k": 0, "min_p": 0, "seed": 3}, "temperature": 1.5, "top_p": 1}
    whole = respond(client, **asked)
    arguments = [json.loads(call.arguments) for call in whole.output]
    assert all(call.type == "function_call" and call.name == "get_weather" for call in whole.output) and all(one["town"] in ("Kyiv", "Lviv") for one in arguments)
    with client.responses.stream(model="tiny", input="hello there", **asked) as stream:
        events = list(stream)
        final = stream.get_final_response()
    assert [json.loads(call.arguments) for call in final.output] == arguments and events[-1].type == "response.completed"
    outputs = [{"type": "function_call_output", "call_id": call.call_id, "output": "sunny"} for call in whole.output]
    after = respond(client, input=[{"role": "user", "content": "hello there"}, *[call.to_dict() for call in whole.output], *outputs])
    assert after.output_text


def test_a_response_by_a_schema(client):
    form = {"type": "json_schema", "name": "town", "schema": TOWN, "strict": True}
    assert json.loads(respond(client, text={"format": form}, max_output_tokens=200).output_text)["town"] in ("Kyiv", "Lviv")


def test_errors_of_responses(small):
    with pytest.raises(openai.BadRequestError) as refused:
        respond(small, previous_response_id="resp_1")
    assert refused.value.param == "previous_response_id"
    with pytest.raises(openai.BadRequestError) as refused:
        respond(small, input="words " * 60)
    assert refused.value.code == "context_length_exceeded"
    *_, last = respond(small, input="words " * 60, stream=True)
    assert last.type == "response.failed" and last.response.error.code == "context_length_exceeded"
