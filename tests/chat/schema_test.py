# SPDX-License-Identifier: Apache-2.0
"""Grammars of JSON schemas: every schema has one, and keywords that it does not enforce are reported.

RENDER=PROGRAM names the program that makes them (render.cc). What such grammars let through is tested by the server's
answers and by the engine's walks.
"""

import json
import os
import pathlib

import pytest

import by_winnow


@pytest.fixture(scope="module")
def winnow():
    renderer = by_winnow.Renderer()
    yield renderer
    assert renderer.close() == 0


def integer(**bounds):
    return {"type": "integer", **bounds}


SCHEMAS = {
    "enforced": ({"type": "object", "properties": {"a": {"type": "string", "minLength": 2, "pattern": "^[a-z]+$"}}}, {"minLength"}),
    "plain": ({"type": "object", "properties": {"a": integer(minimum=1, maximum=9)}, "required": ["a"], "title": "T", "$schema": "x"}, set()),
    "odd-pattern": ({"type": "string", "pattern": "^(?=x)\\p{L}+$"}, {"pattern"}),
    "free-pattern": ({"type": "string", "pattern": "a|b"}, {"pattern"}),
    "broken-pattern": ({"type": "string", "pattern": "^(((a[$"}, {"pattern"}),
    "formats": ({"type": "object", "properties": {"a": {"type": "string", "format": "uri"}, "b": {"type": "string", "format": "date"}}}, {"format"}),
    "one-of": ({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "d"}, set()),
    "one-of-and-more": ({"type": "object", "properties": {"a": {}}, "oneOf": [{"required": ["a"]}, {}]}, {"properties", "required"}),
    "all-of-one": ({"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"type": "boolean"}}}, set()),
    "all-of-strings": ({"type": "string", "allOf": [{"minLength": 2}, {"maxLength": 3}]}, {"allOf"}),
    "all-of-objects": ({"allOf": [{"type": "object", "properties": {"a": {"type": "null"}}}, {"properties": {"b": {"type": "null"}}}]}, set()),
    "additional": ({"type": "object", "additionalProperties": {"type": "array", "items": {"type": "number"}}}, set()),
    "nullable": ({"type": "string", "nullable": True}, set()),
    "sixteen-digits": (integer(minimum=-9007199254740991, maximum=9007199254740991), set()),
    "many-digits": (integer(minimum=-(10**30), maximum=1e300), set()),
    "bounds-of-reals": ({"type": "number", "minimum": 0, "multipleOf": 2}, {"minimum", "multipleOf"}),
    "old-bounds": (integer(minimum=1, exclusiveMinimum=True), {"exclusiveMinimum"}),
    "no-integer": (integer(minimum=9, maximum=1), {"minimum"}),
    "cycle": ({"$ref": "#/$defs/a", "$defs": {"a": {"type": "object", "properties": {"next": {"$ref": "#/$defs/a"}}}}}, set()),
    "cycle-of-references": ({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}, None),
    "names-of-rules": ({"properties": {"": {"type": "integer"}, "ref": {"type": "null"}, "ref-target": {"$ref": "#"}}, "required": [""]}, set()),
    "types-with-keywords": ({"type": ["integer", "null", "string"], "minimum": 1, "maxLength": 5}, set()),
    "closed-tuple": ({"type": "array", "prefixItems": [{"type": "null"}], "items": False, "minItems": 1, "maxItems": 1}, set()),
    "short-tuple": ({"type": "array", "prefixItems": [{"type": "null"}], "minItems": 2}, {"minItems"}),
    "required-of-nobody": ({"type": "object", "properties": {"a": {}}, "required": ["a", "b"]}, {"required"}),
    "keywords-of-others": ({"type": "string", "minimum": 5, "items": {}, "required": ["x"]}, set()),
    "whole": ({"type": "object", "properties": {"kids": {"type": "array", "items": {"$ref": "#"}}}}, set()),
    "pointers": ({"$ref": "#/$defs/a~1b", "$defs": {"a/b": {"type": "null"}}}, set()),
    "elsewhere": ({"type": "object", "properties": {"a": {"$ref": "https://example.org/a.json"}, "b": {"$ref": "#/no"}}}, {"$ref"}),
    "names": ({"type": "object", "propertyNames": {"pattern": "^a"}, "patternProperties": {"^b": {}}}, {"propertyNames", "patternProperties"}),
    "booleans": ({"type": "object", "properties": {"a": True, "b": False}}, {"false"}),
    "true": (True, set()),
    "false": (False, {"false"}),
    "empty": ({}, set()),
    "conditions": ({"if": {}, "then": {}, "not": {}, "type": ["string", "null"]}, {"if", "then", "not"}),
    "no-type": ({"type": "frobnicator"}, {"type"}),
    "no-types": ({"type": []}, {"type"}),
    "no-values": ({"enum": []}, {"enum", "type"}),
    "values": ({"enum": ["a", 1, None, {"b": []}]}, set()),
    "tuple": ({"type": "array", "prefixItems": [{"type": "string"}], "uniqueItems": True}, {"uniqueItems"}),
    "long": ({"type": "string", "maxLength": 100_000}, {"maxLength"}),
    "many": ({"type": "array", "items": {"type": "string"}, "minItems": 2**40}, {"minItems"}),
    "negative": ({"type": "array", "items": {"type": "string"}, "minItems": -1, "maxItems": 2.5}, {"minItems", "maxItems"}),
    "many-properties": ({"type": "object", "properties": {f"p{i}": {"type": "string"} for i in range(2000)}}, set()),
    "odd-names": ({"type": "object", "properties": {"@" * 100_000: {}, "a b": {}, "a-b": {}, "": {}, '"\\': {}}}, set()),
    "numbers": ([1, 2], {"false"}),
}


@pytest.mark.parametrize("kind", SCHEMAS)
def test_every_schema_has_a_grammar(winnow, kind):
    schema, left_out = SCHEMAS[kind]
    came = winnow.grammar_of(schema)
    assert "root ::=" in came["grammar"]
    assert left_out is None or set(came["left_out"]) == left_out


@pytest.mark.parametrize("stem", ["Qwen-Qwen2.5-7B-Instruct", "Qwen3-Coder", "openai-gpt-oss-120b", "meta-llama-Llama-3.1-8B-Instruct", "MiniMax-M3"])
def test_functions_may_have_any_schema(winnow, stem):
    """The model sees the original schema; the grammar enforces what it can."""
    source = pathlib.Path(os.environ["TEMPLATES"], stem + ".jinja").read_text()
    asked = [{"role": "user", "content": "x"}]
    for kind, (schema, _) in SCHEMAS.items():
        if not isinstance(schema, dict):
            continue  # some templates read schemas, and support only objects
        inner = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
        function = {"name": "f", "description": "d", "parameters": inner}
        came = winnow(source, asked, tools=[{"type": "function", "function": function}], choice="required")
        assert came.get("grammar"), (kind, came)
    odd = {"type": "object", "properties": {"a": {"type": "string", "pattern": "a|b", "format": "uri"}}}
    came = winnow(source, asked, tools=[{"type": "function", "function": {"name": "f", "description": "d", "parameters": odd}}], choice="required")
    assert {"pattern"} <= set(came["left_out"]) or stem in ("Qwen3-Coder", "MiniMax-M3")  # whose strings are not quoted


@pytest.mark.parametrize(
    "schema",
    [
        "{",
        "nonsense",
        '{"items":' * 5000 + "{}" + "}" * 5000,
        json.dumps({"type": ["array"] * 7, "items": {"type": ["string"], "enum": ["x"]}}),
        json.dumps({"type": ["string"] * 30_000, "enum": ["x"] * 30_000}),
        json.dumps({"properties": {f"p{i}": {} for i in range(60_000)}}),
        json.dumps({"$ref": "#/$defs/r0", "$defs": {f"r{i}": {"$ref": f"#/$defs/r{i + 1}"} for i in range(20_000)}}),
    ],
    ids=["half", "word", "deep", "types", "many-types", "members", "chain"],
)
def test_what_is_no_schema_is_refused(winnow, schema):
    assert "the schema" in winnow.grammar_of(schema)["error"]
