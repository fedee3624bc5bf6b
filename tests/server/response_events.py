# SPDX-License-Identifier: Apache-2.0
"""A strict reader of the Responses API's streams, written from the API's description: it accepts no event out of
place."""

import copy
import json

ENDS = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}


def read_events(text):
    """The events of a stream; the name of each is the type in its data."""
    events = []
    for event in filter(None, text.decode().split("\n\n")):
        name, data = event.split("\n")
        assert name.startswith("event: ") and data.startswith("data: "), event
        events.append(json.loads(data.removeprefix("data: ")))
        assert events[-1]["type"] == name.removeprefix("event: "), event
        assert events[-1]["sequence_number"] == len(events) - 1, event
    return events


class Reader:
    """Builds the output from deltas alone, and compares it with the "done" events."""

    def __init__(self, events):
        self.events = [event for event in events if event["type"] != "response.in_progress"]
        self.output = []

    def take(self, kind):
        event = self.events.pop(0)
        assert event["type"] == kind, (event, kind)
        if "item_id" in event:
            assert event["item_id"] == self.output[-1]["id"] and event["output_index"] == len(self.output) - 1, event
        return event

    def comes(self, kind):
        return self.events[0]["type"] == kind

    def read_texts(self, item, name, part_type):
        part = self.take("response.content_part.added")
        assert part["content_index"] == 0 and part["part"]["type"] == part_type and part["part"]["text"] == ""
        text, logprobs = "", []
        while self.comes(f"response.{name}.delta"):
            delta = self.take(f"response.{name}.delta")
            assert delta["delta"] and delta["content_index"] == 0
            text += delta["delta"]
            logprobs += delta.get("logprobs", [])
        done = self.take(f"response.{name}.done")
        assert done["text"] == text and done.get("logprobs", []) == logprobs
        part = {**part["part"], "text": text}
        if part_type == "output_text":
            part["logprobs"] = logprobs
        assert self.take("response.content_part.done")["part"] == part
        item["content"] = [part]

    def read_arguments(self, item):
        while self.comes("response.function_call_arguments.delta"):
            item["arguments"] += self.take("response.function_call_arguments.delta")["delta"]
        done = self.take("response.function_call_arguments.done")
        assert done["arguments"] == item["arguments"] and json.loads(done["arguments"]) is not None

    def read_item(self):
        added = self.take("response.output_item.added")
        assert added["output_index"] == len(self.output) and added["item"]["status"] == "in_progress"
        item = copy.deepcopy(added["item"])
        self.output.append(item)
        if item["type"] == "message":
            assert item["content"] == [] and item["role"] == "assistant"
            self.read_texts(item, "output_text", "output_text")
        elif item["type"] == "reasoning":
            self.read_texts(item, "reasoning_text", "reasoning_text")
        else:
            assert item["type"] == "function_call" and item["arguments"] == "" and item["name"] and item["call_id"]
            self.read_arguments(item)
        done = self.take("response.output_item.done")
        assert done["output_index"] == added["output_index"] and done["item"]["status"] in ("completed", "incomplete")
        item["status"] = done["item"]["status"]
        assert done["item"] == item

    def response(self):
        created = self.take("response.created")["response"]
        assert created["status"] == "in_progress" and created["output"] == [] and created["usage"] is None
        while self.comes("response.output_item.added"):
            self.read_item()
        (last,) = self.events
        response = last["response"]
        assert response["status"] == ENDS[last["type"]] and response["id"] == created["id"]
        assert response["output"] == self.output
        return response


def response_of(events):
    """The response at the end of a stream."""
    assert [event["type"] for event in events][:2] in (["response.created", "response.in_progress"], ["response.created", "response.failed"])
    for event in events:
        if event["type"] == "response.in_progress":
            assert event["response"]["status"] == "in_progress"
    return Reader(events).response()
