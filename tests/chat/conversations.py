# SPDX-License-Identifier: Apache-2.0
"""Conversations to which the tests apply templates."""


def said(*contents):
    """Alternating messages of the user and the assistant."""
    return [{"role": ("user", "assistant")[i % 2], "content": words} for i, words in enumerate(contents)]


def ruled(rule, *contents):
    return [{"role": "system", "content": rule}, *said(*contents)]


def tool(name, description, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)[:1]}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def called(content, *calls, **more):
    """An assistant message with calls, each (id, name, arguments)."""
    calls = [{"id": i, "type": "function", "function": {"name": name, "arguments": given}} for i, name, given in calls]
    return {"role": "assistant", "content": content, "tool_calls": calls, **more}


def result(of, name, content):
    return {"role": "tool", "tool_call_id": of, "name": name, "content": content}


TOOLS = [
    tool(
        "get_weather",
        "The weather of a city.",
        city={"type": "string", "description": "Its name"},
        days={"type": "integer", "description": "How many"},
    ),
    tool(
        "search",
        "Looks it up.",
        query={"type": "string", "description": "Words"},
        kind={"type": "string", "description": "Where", "enum": ["a", "b"]},
    ),
]
# A tool with parameters of several types, of one of several schemas, and of any type.
LOOSE = tool(
    "get_weather",
    "Tells it.",
    a={"type": ["string", "null"], "description": "A"},
    b={"description": "B"},
    c={"anyOf": [{"type": "string"}, {"type": "null"}], "description": "C"},
)
CALL = ("call00001", "get_weather", {"city": "Tula", "days": 2})

# Messages, and further variables of the template.
CONVERSATIONS = {
    "question": (said("Who wrote War and Peace?"), {}),
    "long": (said("a", "b", "c", "d", "e", "f", "g"), {}),
    "system-turns": (ruled("Be brief.", "Hello", "Good day!", "Why?"), {}),
    "systems": ([*ruled("Be brief.", "Hello", "Good day!"), {"role": "system", "content": "Now at length."}, *said("Why?")], {}),
    "unicode": (ruled("Отвечай по-русски.", "Кто написал «Войну и мир»? 🙂"), {}),
    "lines": (said("first line\nsecond line\n\n    indented", "yes\n", "and\tnow?"), {}),
    "markup": (said("{{ 1 + 1 }} {% if x %} <b>&amp;</b> \"quoted\" 'words' \\n", "[/INST] ok", "</s> <|im_end|> ?"), {}),
    "no-thinking": (said("Hello", "Good day!", "Why?"), {"thinks": False}),
    "thought": ([*said("Hello"), {"role": "assistant", "content": "Good day!", "reasoning_content": "Be kind."}, *said("Why?")], {}),
    "tools": (ruled("Be brief.", "How is the weather in Tula?"), {"tools": TOOLS}),
    "loose-tools": (ruled("Be brief.", "How is it?"), {"tools": [LOOSE]}),
    "call": ([*said("How is the weather?"), called("", CALL), result("call00001", "get_weather", '{"sky": "grey"}')], {"tools": TOOLS}),
    "call-turns": (
        [
            *ruled("Be brief.", "How is the weather?"),
            called("I look.", CALL, reasoning_content="It is about weather."),
            result("call00001", "get_weather", "grey"),
            *said("x", "Grey.", "And tomorrow?")[1:],
        ],
        {"tools": TOOLS},
    ),
}
