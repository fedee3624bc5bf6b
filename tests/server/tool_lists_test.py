# SPDX-License-Identifier: Apache-2.0
"""Lists of tools as agents send them, answered by every API with several templates.

TEMPLATES names the folder of llama.cpp's templates. WINNOW_TEST_MODEL, if set, is the path of a model whose own
template has no tools.
"""

import json
import os
import pathlib

import jsonschema
import pytest
from service import Server, tokens_of_message
from tool_lists import LISTS, OTHER_MESSAGES, OTHER_RESPONSES

TEMPLATES = pathlib.Path(os.environ["TEMPLATES"])
MODEL = os.environ.get("WINNOW_TEST_MODEL")
FAMILIES = ["plain", "Qwen-Qwen2.5-7B-Instruct", "mistralai-Mistral-Nemo-Instruct-2407"]
USER = {"role": "user", "content": "hello"}
# Keywords in the lists that a grammar does not enforce.
FREE = ("pattern", "format", "not", "if", "oneOf", "anyOf", "contains", "uniqueItems", "multipleOf", "minProperties", "maxLength", "propertyNames")
Shape = jsonschema.validators.extend(jsonschema.Draft202012Validator, {keyword: lambda *_: () for keyword in FREE})


def without_nothing(**fields):
    return {name: value for name, value in fields.items() if value is not None}


def chat_body(tools, choice):
    functions = [{"type": "function", "function": without_nothing(name=name, description=text, parameters=schema)} for name, text, schema in tools]
    return "/v1/chat/completions", {"messages": [USER], "tools": functions, "tool_choice": choice}


def responses_body(tools, choice):
    functions = [{"type": "function", "name": name, "description": text, "parameters": schema, "strict": False} for name, text, schema in tools]
    return "/v1/responses", {"input": [USER], "tools": functions + OTHER_RESPONSES, "tool_choice": choice}


def messages_body(tools, choice):
    functions = [{**without_nothing(name=name, description=text), "input_schema": {} if schema is None else schema} for name, text, schema in tools]
    functions[-1]["cache_control"] = {"type": "ephemeral"}
    return "/v1/messages", {"messages": [USER], "tools": functions + OTHER_MESSAGES, "tool_choice": {"type": {"required": "any"}.get(choice, choice)}}


def chat_calls(reply):
    (choice,) = reply["choices"]
    calls = [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in choice["message"].get("tool_calls", [])]
    return reply["usage"]["prompt_tokens"], choice["finish_reason"] == "tool_calls", calls


def responses_calls(reply):
    calls = [(item["name"], json.loads(item["arguments"])) for item in reply["output"] if item["type"] == "function_call"]
    return reply["usage"]["input_tokens"], reply["status"] == "completed", calls


def messages_calls(reply):
    return tokens_of_message(reply), reply["stop_reason"] == "tool_use", [(block["name"], block["input"]) for block in reply["content"] if block["type"] == "tool_use"]


APIS = [(chat_body, chat_calls), (responses_body, responses_calls), (messages_body, messages_calls)]


def closing(server, end):
    """Biases that end strings, objects, lists, answers and numbers as soon as possible; `end` is the end token's
    text."""
    last = [server.good("/tokenize", {"content": text})["tokens"][-1] for text in ('"', "}", "]", end, "<", ",")]
    return {str(token): 100 - 10 * place for place, token in enumerate(last)}


def ask(server, body, length, **more):
    path, fields = body
    return server.good(path, {**fields, "max_output_tokens" if path == "/v1/responses" else "max_tokens": length, "temperature": 0, **more})


def check(server, bias, name):
    """All APIs read the same prompt, and required calls name tools that were sent."""
    schemas = {tool: schema or {} for tool, _, schema in LISTS[name]}
    read = set()
    for body_of, calls_of in APIS:
        read.add(calls_of(ask(server, body_of(LISTS[name], "auto"), 4))[0])
        tokens, is_done, calls = calls_of(ask(server, body_of(LISTS[name], "required"), 2000, logit_bias=bias))
        read.add(tokens)
        assert is_done and calls
        for tool, arguments in calls:
            Shape(schemas[tool]).validate(arguments)
    assert len(read) == 1, read


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, model):
    """A server with the template, and biases for its model."""
    template = [] if request.param == "plain" else ["--chat-template", str(TEMPLATES / f"{request.param}.jinja")]
    with Server(model, "--context", "100000", *template) as one:
        yield one, closing(one, "</s>")


@pytest.mark.parametrize("name", LISTS)
def test_every_list_is_answered_by_every_api(family, name):
    check(*family, name)


@pytest.mark.skipif(not MODEL, reason="WINNOW_TEST_MODEL is not set")
def test_lists_by_a_real_model():
    with Server(MODEL) as server:
        bias = closing(server, "<|im_end|>")
        for name in ("mini-swe-agent", "mcp-fetch"):
            check(server, bias, name)


def test_what_is_not_there_is_named_once(family):
    server, bias = family
    for _ in range(2):
        check(server, bias, "mini-swe-agent")
    for tool in OTHER_RESPONSES + OTHER_MESSAGES:
        assert server.said().count(f"tools of the type {tool['type']} are not supported") == 1
