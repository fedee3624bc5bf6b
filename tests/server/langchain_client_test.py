# SPDX-License-Identifier: Apache-2.0
"""LangChain's chat models against the server: ChatOpenAI by chat completions and by responses, and ChatAnthropic."""

from functools import reduce
from operator import add
from typing import Literal

import pytest
from langchain_anthropic import ChatAnthropic
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from program import PATIENCE
from pydantic import BaseModel
from service import Server

MESSAGES = [SystemMessage("Be brief."), HumanMessage("hello there")]
COMMON = {"model": "tiny", "api_key": "none", "max_retries": 0, "timeout": PATIENCE, "max_tokens": 3000}


@tool
def get_weather(town: Literal["Kyiv", "Lviv"], days: Literal[1, 2] = 1) -> str:
    """Tells the weather."""
    return f"sunny in {town}"


class Report(BaseModel):
    """A report."""

    town: Literal["Kyiv", "Lviv"]
    rainy: bool


def chat(server, fields, **more):
    return ChatOpenAI(base_url=f"http://{server.host}:{server.port}/v1", extra_body=fields, stream_usage=True, **COMMON, **more)


def responses(server, fields):
    return chat(server, fields, use_responses_api=True)


def messages(server, fields):
    return ChatAnthropic(base_url=f"http://{server.host}:{server.port}", model_kwargs={"extra_body": fields}, **COMMON)


MODELS = {make.__name__: make for make in (chat, responses, messages)}
ENDED = {"chat": ("finish_reason", "stop", "tool_calls"), "responses": ("status", "completed", "completed"), "messages": ("stop_reason", "end_turn", "tool_use")}
SCHEMAS = [(api, method) for api in MODELS for method in ("json_schema", "function_calling", "json_mode") if (api, method) != ("messages", "json_mode")]
every_api = pytest.mark.parametrize("api", MODELS)


def streamed(model):
    """The chunks of an answer, joined as LangChain does."""
    chunks = list(model.stream(MESSAGES))
    assert len(chunks) > 2
    return reduce(add, chunks)


@every_api
def test_an_answer_whole_and_in_a_stream(server, brief, api):
    alone = server.good("/v1/chat/completions", {"messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}], **brief})
    model = MODELS[api](server, brief)
    place, ended, _ = ENDED[api]
    for answer in (model.invoke(MESSAGES), streamed(model)):
        assert answer.text == alone["choices"][0]["message"]["content"]
        assert answer.usage_metadata["input_tokens"] == alone["usage"]["prompt_tokens"] and answer.usage_metadata["output_tokens"] == 8
        assert answer.response_metadata[place] == ended and not answer.tool_calls


@every_api
def test_calls_and_their_results(server, brief, api):
    model = MODELS[api](server, brief)
    place, _, ended = ENDED[api]
    calling = model.bind_tools([get_weather], tool_choice="any")
    whole, parts = calling.invoke(MESSAGES), streamed(calling)
    assert whole.tool_calls and [call["args"] for call in parts.tool_calls] == [call["args"] for call in whole.tool_calls]
    after = []
    for answer in (whole, parts):
        assert answer.response_metadata[place] == ended and not answer.invalid_tool_calls
        results = [get_weather.invoke(call) for call in answer.tool_calls]
        assert all(result.content in ("sunny in Kyiv", "sunny in Lviv") for result in results)
        after.append(model.bind_tools([get_weather]).invoke([*MESSAGES, answer, *results]))
    assert after[0].text == after[1].text
    read = [{name: answer.usage_metadata[name] for name in ("input_tokens", "output_tokens", "total_tokens")} for answer in after]
    assert read[0] == read[1], "the second may have found more"


@every_api
def test_the_tool_that_is_named_is_called(server, brief, api):
    @tool
    def get_time(zone: Literal["UTC", "EET"]) -> str:
        """Tells the time."""

    (call,) = MODELS[api](server, brief).bind_tools([get_weather, get_time], tool_choice="get_time").invoke(MESSAGES).tool_calls
    assert call["name"] == "get_time" and call["args"]["zone"] in ("UTC", "EET")


@pytest.mark.parametrize("api, method", SCHEMAS)
def test_an_output_of_a_type(server, brief, api, method):
    result = MODELS[api](server, brief).with_structured_output(Report, method=method, include_raw=True).invoke(MESSAGES)
    if method == "json_mode":  # any object
        assert result["raw"].text.startswith("{")
    else:
        assert isinstance(result["parsed"], Report) and result["parsing_error"] is None


@every_api
def test_a_prompt_that_is_too_long_has_its_exception(model, brief, api):
    with Server(model, "--context", "300") as small, pytest.raises(ContextOverflowError):
        MODELS[api](small, brief).invoke([HumanMessage("many words " * 40)])
