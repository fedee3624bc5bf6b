# SPDX-License-Identifier: Apache-2.0
"""Answers under `response_format` parse and match their schema, as checked by the Python package jsonschema."""

import json
import random

import pytest
from service import Server, sentence

CHAT, COMPLETION, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/messages"
GOOD = {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 1}


def format_of(schema, strict=True):
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": strict, "schema": schema}}


def body(schema, **fields):
    return {"prompt": "hello", "max_tokens": 1500, "temperature": 1.5, "top_p": 1, "min_p": 0, "top_k": 0, "response_format": format_of(schema), **fields}


def in_order(text):
    """JSON as lists of pairs, which keep the order of members."""
    return json.loads(text, object_pairs_hook=list)


def answers(server, schema, n=4, **fields):
    """The texts of complete answers."""
    reply = server.good(COMPLETION, body(schema, n=n, **fields))
    return [choice["text"] for choice in reply["choices"] if choice["finish_reason"] == "stop"]


class Schemas:
    """Random schemas with short values, so that even a random model completes them."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def string(self):
        least = self.random.randrange(4)
        return {"type": "string", "minLength": least, "maxLength": least + self.random.randrange(5)}

    def integer(self):
        least = self.random.randrange(-3000, 3000)
        kind = self.random.choice(["minimum", "exclusiveMinimum"])
        return {"type": "integer", kind: least, "maximum": least + 1 + self.random.randrange(2000)}

    def pattern(self):
        least = self.random.randrange(4)
        return {"type": "string", "pattern": "^[a-c]{%d,%d}(x|yz)?$" % (least, least + self.random.randrange(3))}

    def moment(self):
        return {"type": "string", "format": self.random.choice(["date", "time", "date-time", "uuid"])}

    def enum(self):
        return {"enum": self.random.sample(["a", 'b"\\', 5, 1.5, None, True, "né\n", [1, {"x": "y"}], {}], 3)}

    def const(self):
        return {"const": self.random.choice(["fixed", 3, None, {"a": [1]}])}

    def plain(self):
        return {"type": self.random.choice(["boolean", "null", ["boolean", "null"], ["integer", "null"]]), "description": "whatever"}

    def array(self, depth):
        least = self.random.randrange(3)
        return {"type": "array", "items": self.any(depth - 1), "minItems": least, "maxItems": least + self.random.randrange(3)}

    def object(self, depth):
        names = self.random.sample(["zeta", "alpha", 'quo"te', "back\\slash", "né", "", "with space"], self.random.randrange(5))
        out = {"type": "object", "properties": {name: self.any(depth - 1) for name in names}}
        out["required"] = [name for name in names if self.random.random() < 0.5]
        if self.random.random() < 0.8:
            out["additionalProperties"] = False
        return out

    def tuple(self, depth):
        items = [self.any(depth - 1) for _ in range(self.random.randrange(1, 3))]
        return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}

    def choice(self, depth):
        return {"anyOf": [self.any(depth - 1) for _ in range(self.random.randrange(1, 4))]}

    def any(self, depth):
        flat = [self.string, self.integer, self.pattern, self.moment, self.enum, self.const, self.plain]
        deep = [lambda: self.array(depth), lambda: self.object(depth), lambda: self.choice(depth)]
        return self.random.choice(flat if depth == 0 else flat + deep * 3)()


RECURSIVE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"value": {"$ref": "#/$defs/value"}, "next": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]}},
            "required": ["value", "next"],
            "additionalProperties": False,
        },
        "value": {"type": "integer", "minimum": 0, "maximum": 99},
    },
}
LONG = {"type": "string", "minLength": 200, "maxLength": 330}


def test_answers_are_what_their_schemas_say(server):
    jsonschema = pytest.importorskip("jsonschema")
    schemas = [Schemas(seed).any(3) for seed in range(80)] + [RECURSIVE, LONG]
    complete = 0
    for seed, schema in enumerate(schemas):
        jsonschema.Draft202012Validator.check_schema(schema)
        for text in answers(server, schema, seed=10 * seed):
            jsonschema.Draft202012Validator(schema).validate(json.loads(text))
            complete += 1
    assert complete > 3 * len(schemas), "most answers come to their end"


def test_members_come_in_the_order_of_the_schema(server):
    names = ["zeta", "alpha", "mid", "beta"]
    schema = {"type": "object", "properties": {name: {"type": "boolean"} for name in names}, "required": names}
    for text in answers(server, schema, seed=1):
        assert [name for name, _ in in_order(text)] == names


def test_members_that_need_not_be_there_come_and_stay_away(server):
    names = ["zeta", "alpha", "mid"]
    schema = {"type": "object", "properties": {name: {"type": "null"} for name in names}, "required": ["alpha"]}
    seen = {tuple(name for name, _ in in_order(text)) for text in answers(server, schema, n=100, seed=1)}
    assert seen == {("alpha",), ("alpha", "zeta"), ("alpha", "mid"), ("alpha", "zeta", "mid")}, "those that must be there come first"


@pytest.mark.parametrize("format", [{"type": "json_object"}, {"type": "json_object", "schema": {"type": "object", "properties": {"a": {"const": 5}}, "required": ["a"]}}])
def test_json_objects(server, format):
    ends = 0
    for seed in range(6):
        reply = server.good(COMPLETION, {**body({}), "response_format": format, "logit_bias": {"128": 4, "37": 4}, "seed": seed})
        choice = reply["choices"][0]
        if choice["finish_reason"] == "stop":
            ends += 1
            value = json.loads(choice["text"])
            assert isinstance(value, dict) and ("schema" not in format or value == {"a": 5})
    assert ends > 0


def test_a_chat_and_its_stream(server):
    chat = {**body(RECURSIVE), "messages": GOOD["messages"], "seed": 4}
    whole = server.good(CHAT, chat)["choices"][0]
    pieces = "".join(event["choices"][0]["delta"].get("content", "") for event in server.stream(CHAT, chat))
    assert pieces == whole["message"]["content"] and json.loads(pieces)["value"] <= 99


def test_text_is_text(server):
    assert server.good(CHAT, {**GOOD, "response_format": {"type": "text"}})["choices"] == server.good(CHAT, GOOD)["choices"]


UNENFORCED = [
    ({"type": "string", "pattern": "(?=a)b"}, "pattern"),
    ({"properties": {"x": {"items": {"type": "string", "format": "iri"}}}}, "format"),
    ({"anyOf": [{"type": "null"}, {"multipleOf": 5, "type": "number"}]}, "multipleOf"),
    ({"$ref": "#/$defs/x", "$defs": {"x": {"not": {}}}}, "not"),
    ({"type": "object", "properties": {"a": {}}, "propertyNames": {"maxLength": 3}}, "propertyNames"),
    ({"type": "number", "minimum": 0.5}, "minimum"),
    ({"$ref": "http://example.com/x"}, "$ref"),
    ({"type": "string", "maxLength": 1 << 60}, "maxLength"),
    ({"type": "array", "uniqueItems": True}, "uniqueItems"),
    (False, "not"),
]


def chat(format):
    return CHAT, {**GOOD, "response_format": format}


def asked_for(schema, strict):
    """Requests of each API for an answer by a schema, and for calls of a function with that schema."""
    wanted = {} if strict is None else {"strict": strict}
    say = {"messages": GOOD["messages"], "max_tokens": 16}
    yield CHAT, {**say, "response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": schema, **wanted}}}
    yield COMPLETION, {"prompt": "a", "max_tokens": 1, "response_format": {"type": "json_schema", "json_schema": {"schema": schema, **wanted}}}
    yield RESPONSES, {"input": "a", "max_output_tokens": 16, "text": {"format": {"type": "json_schema", "name": "x", "schema": schema, **wanted}}}
    for field in () if strict is False else ("output_format", "output_config"):
        form = {"type": "json_schema", "schema": schema, **wanted}
        yield MESSAGES, {**say, field: {"format": form} if field == "output_config" else form}
    parameters = {"type": "object", "properties": {"value": schema}}
    yield CHAT, {**say, "tools": [{"type": "function", "function": {"name": "f", "parameters": parameters, **wanted}}]}
    yield RESPONSES, {"input": "a", "max_output_tokens": 16, "tools": [{"type": "function", "name": "f", "parameters": parameters, **wanted}]}
    yield MESSAGES, {**say, "tools": [{"name": "f", "input_schema": parameters, **wanted}]}


@pytest.mark.parametrize("schema, keyword", UNENFORCED)
def test_a_keyword_that_no_grammar_enforces_is_refused_only_where_it_is_strict(server, schema, keyword):
    for strict in (None, False):
        for path, request in asked_for(schema, strict):
            server.good(path, request)
    for path, request in asked_for(schema, True):
        status, reply = server.post(path, request)
        message = reply["error"]["message"]
        named = {keyword, "false"} if schema is False else {keyword}
        assert status == 400 and "strict" in message and any(name in message for name in named), reply
        if path != MESSAGES:
            assert sentence(reply)["param"] in message


def test_keywords_that_no_grammar_enforces_are_named_once(model):
    with Server(model, "--context", "4000") as server:
        for path, request in asked_for({"type": "object", "minProperties": 5}, None):
            server.good(path, request)
        assert server.said().count("the keyword minProperties of JSON schemas is not enforced") == 1


VALID = [
    True,
    {},
    {"type": "object", "additionalProperties": {"type": "null"}},
    {"oneOf": [{"type": "null"}, {"type": "boolean"}]},
    {"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}, "required": ["a"]}, {"properties": {"b": {"type": "null"}}}]},
    {"type": "integer", "minimum": -9007199254740991, "maximum": 9007199254740991},
    {"type": ["string", "null"], "maxLength": 5},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "type": "boolean", "title": "x", "default": True},
    {"enum": ["x" * 10 + str(i) for i in range(300)]},
    {"type": "array", "items": {"anyOf": [{"type": "string", "maxLength": 100 + i} for i in range(20)]}, "maxItems": 3},
]


@pytest.mark.parametrize("schema", VALID)
def test_valid_schemas_are_strict(server, schema):
    for path, request in asked_for(schema, True):
        server.good(path, request)


@pytest.mark.parametrize("schema", [5, [], "object", None])
def test_what_is_no_schema_is_refused(server, schema):
    status, reply = server.post(*chat(format_of(schema)))
    assert status == 400 and sentence(reply)["param"] == "response_format.json_schema.schema", reply


FORMATS = [
    ({}, "response_format.type"),
    ({"type": "xml"}, "response_format.type"),
    ({"type": "json_schema"}, "response_format.json_schema"),
    ({"type": "json_schema", "json_schema": 5}, "response_format.json_schema"),
    ({"type": "json_schema", "json_schema": {"name": "x"}}, "response_format.json_schema.schema"),
    ({"type": "json_schema", "json_schema": {"name": 5, "schema": {}}}, "response_format.json_schema.name"),
    ({"type": "json_schema", "json_schema": {"strict": "yes", "schema": {}}}, "response_format.json_schema.strict"),
]


@pytest.mark.parametrize("format, field", FORMATS)
def test_a_format_that_cannot_be_is_refused(server, format, field):
    status, reply = server.post(CHAT, {**GOOD, "response_format": format})
    assert status == 400 and sentence(reply)["param"] == field, reply


HOSTILE = {
    "deep": json.dumps(GOOD)[:-1] + ', "response_format": {"type": "json_schema", "json_schema": {"schema": ' + '{"items":' * 70 + "{}" + "}" * 73,
    "a chain": {"$ref": "#/$defs/0", "$defs": {**{str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(4000)}, "4000": {}}},
    "many chains": {"properties": {f"p{i}": {"$ref": "#/$defs/0"} for i in range(900)}, "$defs": {str(i): {"$ref": f"#/$defs/{i + 1}"} for i in range(900)} | {"900": {}} | {f"x{i}": {} for i in range(4000)}},
    "many types": {"type": ["string"] * 30_000, "enum": ["x"] * 30_000},
    "many members": {"properties": {f"p{i}": {} for i in range(60_000)}},
    "very many properties": {"properties": {str(i): {} for i in range(1000)}},
    "a fan": {"$defs": {str(i): {"anyOf": [{"$ref": f"#/$defs/{i + 1}"}] * 2} for i in range(60)} | {"60": {"type": "null"}}, "$ref": "#/$defs/0"},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_ends_nothing(server, name):
    schema = HOSTILE[name]
    status, reply = server.post(CHAT, schema if isinstance(schema, str) else {**GOOD, "response_format": format_of(schema)})
    assert status in (200, 400), reply
