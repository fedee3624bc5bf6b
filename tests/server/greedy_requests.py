# SPDX-License-Identifier: Apache-2.0
"""Random requests, as path and JSON text, that take far more time or memory than their size suggests. A server must
answer or refuse them in good time, without an effect on other clients."""

import json

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
REFUSALS = {400, 404, 413, 429, 501, 503}


def chat(**fields):
    return CHAT, json.dumps({"messages": [{"role": "user", "content": "hi"}], "max_tokens": 2, **fields})


def tool(parameters):
    return chat(tools=[{"type": "function", "function": {"name": "f", "parameters": parameters}}])


def schema(of):
    return chat(response_format={"type": "json_schema", "json_schema": {"name": "x", "schema": of}})


def members(count):
    return "{" + ",".join(f'"k{i}":0' for i in range(count)) + "}"


def raw(text):
    path, body = chat()
    return path, body[:-1] + ", " + text + "}"


def long_lists(chance):
    many = chance.choice([10, 60, 1000, 5000])
    return chance.choice([
        chat(n=64, stop=["x" * 1000] * min(many, 64)),
        chat(n=64, stop_token_ids=list(range(5, 5 + min(many, 200))) * 5),
        chat(n=64, min_tokens=1, logit_bias={str(i): 1 for i in range(many)}),
        chat(logit_bias={str(i): 1 for i in range(5)} | {f"0{i}": 1 for i in range(5)}),
        chat(messages=[{"role": "user", "content": ""}] * (many * 3)),
        chat(messages=[{"role": "user", "content": [{"type": "text", "text": ""}] * many}]),
        (COMPLETION, json.dumps({"prompt": ["a"] * min(many, 200), "max_tokens": 1, "n": 64})),
        chat(winnow={"documents": ["a"] * many}),
        raw('"tools": ' + "[" * 40 + "]" * 40),
        raw('"junk": [' + "[]," * many * 20 + "[]]"),
    ])  # fmt: skip


def long_texts(chance):
    size = chance.choice([100, 5000, 200_000])
    return chance.choice([
        chat(cache_salt="s" * size + str(chance.random())),
        chat(user="u" * size),
        chat(model="m" * size),
        chat(winnow={"kv": "k" * size}),
        chat(winnow={"k" * size: 1}),
        chat(winnow={"documents": ["d" * size]}),
        chat(stop="s" * size),
        ("/tokenize", json.dumps({"prompt": "a b" * size, "return_token_strs": True})),
        ("/tokenize", json.dumps({"prompt": "<|im_end|>" * (size // 20)})),
        (COMPLETION, json.dumps({"prompt": "<|im_end|>" * (size // 20), "max_tokens": 1})),
    ])  # fmt: skip


def objects_that_come_twice(chance):
    inner = members(chance.choice([10, 3000, 20_000]))
    return chance.choice([
        raw(f'"response_format": {inner}, "response_format": {inner}'),
        raw(f'"tools": [{inner}], "tools": [{inner}]'),
        raw('"n": 1, "n": 2'),
    ])  # fmt: skip


def grammars(chance):
    count = chance.choice([5, 60, 600])
    words = [chance.choice("abcdefgh") * chance.randint(1, 5) + str(i) for i in range(count * 5)]
    loop = {"type": "array", "items": {"anyOf": [{"$ref": "#"}] * min(count, 60)}, "maxItems": 60}
    return chance.choice([
        schema({"type": "string", "enum": words}),
        schema(loop),
        schema({"anyOf": [{"type": "array", "items": {"$ref": "#"}, "maxItems": i + 1} for i in range(min(count, 60))]}),
        tool({"type": "object", "properties": {word: {"type": "string"} for word in words}}),
    ])  # fmt: skip


def many_answers(chance):
    return chat(messages=[{"role": "user", "content": "words " * chance.randint(1, 400)}], n=chance.choice([8, 64]), temperature=1)


ALL = [long_lists, long_texts, objects_that_come_twice, grammars, many_answers]
