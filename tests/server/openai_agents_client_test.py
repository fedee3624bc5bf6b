# SPDX-License-Identifier: Apache-2.0
"""OpenAI's Agents SDK against the server: by the Responses API, its default, and by chat completions."""

import asyncio
from typing import Literal

import openai
import pytest
from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool
from program import PATIENCE
from pydantic import BaseModel
from service import Server

MODELS = {"responses": OpenAIResponsesModel, "chat": OpenAIChatCompletionsModel}
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello there"}]
Town = Literal["Kyiv", "Lviv"]
pytestmark = [pytest.mark.parametrize("api", MODELS), pytest.mark.parametrize("streamed", [False, True])]


@pytest.fixture(scope="module")
def small(model):
    with Server(model, "--context", "300") as one:
        yield one


class Report(BaseModel):
    town: Town
    rainy: bool


def weather_of(asked):
    """A tool that records its arguments."""

    @function_tool
    def get_weather(town: Town, days: Literal[1, 2]) -> str:
        """Tells the weather.

        Args:
            town: The town.
            days: The number of days.
        """
        asked.append((town, days))
        return f"sunny in {town}"

    return get_weather


def run(server, api, streamed, fields, *, said="hello there", choice=None, others=(), **options):
    """The result of an agent, and its events if it is streamed."""

    async def ask():
        async with openai.AsyncOpenAI(base_url=f"http://{server.host}:{server.port}/v1", api_key="none", max_retries=0, timeout=PATIENCE) as client:
            settings = ModelSettings(max_tokens=3000, include_usage=True, extra_body=fields)
            common = {"instructions": "Be brief.", "model": MODELS[api]("tiny", client), "model_settings": settings}
            agent = Agent(name="Helper", handoffs=[Agent(name=name, **common) for name in others], **common, **options)
            agent.model_settings = settings.resolve(ModelSettings(tool_choice=choice))
            if not streamed:
                return await Runner.run(agent, said), []
            result = Runner.run_streamed(agent, said)
            return result, [event async for event in result.stream_events()]

    return asyncio.run(ask())


def raw_events(events, kind):
    return [event.data for event in events if event.type == "raw_response_event" and event.data.type == kind]


def test_an_answer_and_its_usage(server, brief, api, streamed):
    result, events = run(server, api, streamed, brief)
    alone = server.good("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 3000, **brief})
    assert result.final_output == alone["choices"][0]["message"]["content"]
    usage = result.context_wrapper.usage
    assert (usage.requests, usage.input_tokens, usage.output_tokens) == (1, alone["usage"]["prompt_tokens"], alone["usage"]["completion_tokens"])
    assert "".join(event.delta for event in raw_events(events, "response.output_text.delta")) == (result.final_output if streamed else "")


def test_calls_are_made_and_their_results_answered(server, brief, api, streamed):
    asked = []
    result, events = run(server, api, streamed, brief, tools=[weather_of(asked)], choice="required")
    called = [item.raw_item for item in result.new_items if item.type == "tool_call_item"]
    assert len(called) == len(asked) > 0 and all(town in ("Kyiv", "Lviv") and days in (1, 2) for town, days in asked)
    outputs = [item.raw_item for item in result.new_items if item.type == "tool_call_output_item"]
    assert [output["call_id"] for output in outputs] == [call.call_id for call in called]
    assert result.new_items[-1].type == "message_output_item" and result.context_wrapper.usage.requests == 2
    functions = [{"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}} for call in called]
    said = [*MESSAGES, {"role": "assistant", "tool_calls": functions}]
    said += [{"role": "tool", "tool_call_id": output["call_id"], "content": output["output"]} for output in outputs]
    parameters = weather_of([]).params_json_schema
    tools = [{"type": "function", "function": {"name": "get_weather", "description": "Tells the weather.", "parameters": parameters}}]
    alone = server.good("/v1/chat/completions", {"messages": said, "tools": tools, "max_tokens": 3000, **brief})
    assert result.final_output == alone["choices"][0]["message"]["content"]
    pieces = "".join(event.delta for event in raw_events(events, "response.function_call_arguments.delta"))
    assert pieces == ("".join(call.arguments for call in called) if streamed else "")


def test_an_output_of_a_type(server, brief, api, streamed):
    result, _ = run(server, api, streamed, brief, output_type=Report)
    assert isinstance(result.final_output, Report)


def test_another_agent_takes_over(server, brief, api, streamed):
    """The handover tool has no parameters."""
    result, _ = run(server, api, streamed, {**brief, "parallel_tool_calls": False}, others=["Expert"], choice="transfer_to_expert")
    assert result.last_agent.name == "Expert" and result.final_output


def test_a_conversation_goes_on(server, brief, api, streamed):
    first, _ = run(server, api, streamed, brief, tools=[weather_of([])], choice="required")
    second, _ = run(server, api, streamed, brief, said=[*first.to_input_list(), {"role": "user", "content": "And you?"}])
    assert second.final_output and second.context_wrapper.usage.input_tokens > first.context_wrapper.usage.request_usage_entries[0].output_tokens


def test_a_conversation_that_is_too_long(small, brief, api, streamed):
    """Programs search errors for this sentence, and then shorten their requests."""
    with pytest.raises(Exception, match="exceeds the available context size"):
        run(small, api, streamed, brief, said="many words " * 40)
