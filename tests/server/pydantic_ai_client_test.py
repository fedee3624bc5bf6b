# SPDX-License-Identifier: Apache-2.0
"""Pydantic AI against the server: its models of chat completions, responses and messages."""

import asyncio
from typing import Literal

import pytest
from program import PATIENCE
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput, ToolOutput
from pydantic_ai.capabilities import PrepareOutputTools, PrepareTools
from pydantic_ai.exceptions import ModelContextWindowExceededError
from pydantic_ai.messages import ToolCallPart, ToolReturnPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from service import Server

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}]
Town = Literal["Kyiv", "Lviv"]


class Report(BaseModel):
    town: Town
    rainy: bool


def openai(server):
    return OpenAIProvider(base_url=f"http://{server.host}:{server.port}/v1", api_key="none")


def anthropic(server):
    return AnthropicProvider(base_url=f"http://{server.host}:{server.port}", api_key="none")


MODELS = {
    "chat": lambda server: OpenAIChatModel("tiny", provider=openai(server)),
    "responses": lambda server: OpenAIResponsesModel("tiny", provider=openai(server)),
    # It knows the model's features by this name.
    "messages": lambda server: AnthropicModel("claude-sonnet-4-5", provider=anthropic(server)),
}
pytestmark = pytest.mark.parametrize("api", MODELS)


def agent(server, api, fields, **more):
    settings = {"max_tokens": 3000, "extra_body": fields, "timeout": PATIENCE}
    return Agent(MODELS[api](server), instructions="Be brief.", model_settings=settings, **more)


def streamed(asked):
    """The deltas of an answer, and the result."""

    async def ask():
        async with asked.run_stream("hello there") as result:
            return [delta async for delta in result.stream_text(delta=True, debounce_by=None)], result

    return asyncio.run(ask())


def test_an_answer_whole_and_in_a_stream(server, brief, api):
    alone = server.good("/v1/chat/completions", {"messages": MESSAGES, **brief})
    asked = agent(server, api, brief)
    whole = asked.run_sync("hello there")
    deltas, parts = streamed(asked)
    assert whole.output == "".join(deltas) == alone["choices"][0]["message"]["content"] and len(deltas) > 1
    for result in (whole, parts):
        assert (result.usage.requests, result.usage.input_tokens, result.usage.output_tokens) == (1, alone["usage"]["prompt_tokens"], 8)
        assert result.all_messages()[-1].finish_reason == "stop"


@pytest.mark.parametrize("form", [NativeOutput, ToolOutput])
def test_an_output_of_a_type(server, brief, api, form):
    result = agent(server, api, brief, output_type=form(Report)).run_sync("hello there")
    assert isinstance(result.output, Report) and result.usage.requests == 1


def test_tools_are_called_and_their_results_answered(server, brief, api):
    """The model can only call the weather tool first, and only report then."""
    first = PrepareTools(lambda context, tools: tools if context.run_step == 1 else [])
    then = PrepareOutputTools(lambda context, tools: [] if context.run_step == 1 else tools)
    asked = []

    def get_weather(town: Town, days: Literal[1, 2] = 1) -> str:
        """Tells the weather.

        Args:
            town: The town.
            days: The number of days.
        """
        asked.append(town)
        return f"sunny in {town}"

    result = agent(server, api, brief, output_type=ToolOutput(Report), tools=[get_weather], capabilities=[first, then]).run_sync("hello there")
    parts = [part for message in result.all_messages() for part in message.parts]
    calls = [part for part in parts if isinstance(part, ToolCallPart) and part.tool_name == "get_weather"]
    returns = [part for part in parts if isinstance(part, ToolReturnPart) and part.tool_name == "get_weather"]
    assert calls and [call.args_as_dict()["town"] for call in calls] == asked and set(asked) <= {"Kyiv", "Lviv"}
    assert [(one.tool_call_id, one.content) for one in returns] == [(call.tool_call_id, f"sunny in {town}") for call, town in zip(calls, asked)]
    assert isinstance(result.output, Report) and result.usage.requests == 2 and result.usage.tool_calls == len(calls)


def test_a_conversation_goes_on(server, brief, api):
    asked = agent(server, api, brief)
    first = asked.run_sync("hello there")
    second = asked.run_sync("And you?", message_history=first.all_messages())
    said = [*MESSAGES, {"role": "assistant", "content": first.output}, {"role": "user", "content": "And you?"}]
    assert second.output == server.good("/v1/chat/completions", {"messages": said, **brief})["choices"][0]["message"]["content"]


def test_a_prompt_that_is_too_long_has_its_exception(model, brief, api):
    with Server(model, "--context", "300") as small, pytest.raises(ModelContextWindowExceededError):
        agent(small, api, brief).run_sync("many words " * 40)
