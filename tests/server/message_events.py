# SPDX-License-Identifier: Apache-2.0
"""A strict reader of the Messages API's streams, written from the API's description: it accepts no event out of
place."""

import json

DELTAS = {"text": {"text_delta"}, "thinking": {"thinking_delta", "signature_delta"}, "tool_use": {"input_json_delta"}}


def read_events(text):
    """The events of a stream; the name of each is the type in its data."""
    events = []
    for event in filter(None, text.decode().split("\n\n")):
        name, data = event.split("\n")
        assert name.startswith("event: ") and data.startswith("data: "), event
        events.append(json.loads(data.removeprefix("data: ")))
        assert events[-1]["type"] == name.removeprefix("event: "), event
    return events


def add_delta(block, delta):
    assert delta["type"] in DELTAS[block["type"]], (block, delta)
    if delta["type"] == "input_json_delta":
        block["json"] = block.get("json", "") + delta["partial_json"]
    else:
        field = delta["type"].removesuffix("_delta")
        assert field != "signature" or block["thinking"]
        block[field] += delta[field]


def closed(block):
    if block["type"] == "tool_use":
        assert block["input"] == {}
        block["input"] = json.loads(block.pop("json", "{}"))
    assert block["type"] == "tool_use" or block[block["type"]], "no block is empty"
    return block


def message_of(events):
    """The message that the events add up to, with the fields of the last events."""
    events = [event for event in events if event["type"] != "ping"]
    first, *events = events
    assert first.keys() == {"type", "message"} and first["type"] == "message_start"
    message = first["message"]
    assert message["content"] == [] and message["stop_reason"] is None and message["usage"]["output_tokens"] == 0
    while events[0]["type"] == "content_block_start":
        start, *events = events
        assert start["index"] == len(message["content"])
        block = start["content_block"]
        while events[0]["type"] == "content_block_delta":
            delta, *events = events
            assert delta["index"] == start["index"]
            add_delta(block, delta["delta"])
        stop, *events = events
        assert stop == {"type": "content_block_stop", "index": start["index"]}
        message["content"].append(closed(block))
    last, end = events
    assert last["type"] == "message_delta" and end == {"type": "message_stop"}
    assert last["delta"].keys() == {"stop_reason", "stop_sequence"}
    return {**message, **last["delta"], "usage": last["usage"], "winnow": last["winnow"], "timings": last["timings"]}
