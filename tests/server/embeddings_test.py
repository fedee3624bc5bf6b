# SPDX-License-Identifier: Apache-2.0
"""Embeddings over HTTP: their form, and properties that hold for any numbers. The engine's test compares the numbers
with libllama's."""

import base64
import math
import struct
import subprocess

import pytest
from gguf_keys import UINT32, write_with_keys
from program import PATIENCE, WINNOW, check_refusal
from service import Server, sentence

EMBEDDINGS = "/v1/embeddings"
TEXT = "some words to read, and then some more"


def embed(server, text, **fields):
    """The vectors of a request."""
    reply = server.good(EMBEDDINGS, {"input": text, **fields})
    assert reply["object"] == "list" and [(one["object"], one["index"]) for one in reply["data"]] == [("embedding", i) for i in range(len(reply["data"]))]
    return [one["embedding"] for one in reply["data"]]


def length(vector):
    return math.sqrt(sum(value * value for value in vector))


def tokens_of(server, text):
    return server.good("/tokenize", {"content": text, "add_special_tokens": True})["tokens"]


def test_the_form_is_openais(server):
    reply = server.good(EMBEDDINGS, {"model": "any", "input": TEXT, "user": "me", "encoding_format": "float"})
    props = server.get("/v1/models")[1]["data"][0]
    assert reply.keys() == {"object", "data", "model", "usage"} and reply["model"] == props["id"]
    tokens = len(tokens_of(server, TEXT))
    assert reply["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    (vector,) = [one["embedding"] for one in reply["data"]]
    assert len(vector) == props["meta"]["n_embd"] and math.isclose(length(vector), 1, abs_tol=1e-5)


@pytest.mark.parametrize("pooling", ["mean", "last"])
def test_texts_and_tokens_alone_and_together_are_the_same(server, pooling):
    how = {"winnow": {"pooling": pooling}}
    texts = [TEXT, "x", "words " * 300, TEXT]
    alone = [embed(server, text, **how)[0] for text in texts]
    assert embed(server, texts, **how) == alone
    assert embed(server, [tokens_of(server, text) for text in texts], **how) == alone
    assert embed(server, tokens_of(server, TEXT), **how) == alone[:1]
    assert alone[0] != alone[1] and alone[0] != embed(server, TEXT, winnow={"pooling": "last" if pooling == "mean" else "mean"})[0]
    usage = server.good(EMBEDDINGS, {"input": texts})["usage"]["prompt_tokens"]
    assert usage == sum(len(tokens_of(server, text)) for text in texts)


def test_the_mean_of_one_token_is_the_last(server):
    assert embed(server, [5], winnow={"pooling": "mean"}) == embed(server, [5], winnow={"pooling": "last"})


def test_base64_has_the_same_numbers(server):
    (plain,) = embed(server, TEXT)
    (packed,) = embed(server, TEXT, encoding_format="base64")
    data = base64.b64decode(packed, validate=True)
    numbers = struct.unpack(f"<{len(data) // 4}f", data)
    assert list(numbers) == [struct.unpack("<f", struct.pack("<f", value))[0] for value in plain]


def test_dimensions_are_the_first_ones_of_length_1(server):
    (whole,) = embed(server, TEXT)
    for most in (1, 7, len(whole)):
        (cut,) = embed(server, TEXT, dimensions=most)
        expected = [value / length(whole[:most]) for value in whole[:most]]
        assert len(cut) == most and all(math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-7) for a, b in zip(cut, expected))


def test_the_file_says_how_they_are_pooled(model, work):
    for kind, pooling in ((1, "mean"), (3, "last"), (0, "mean")):
        with Server(write_with_keys(model, f"{work}/pooled.gguf", {"llama.pooling_type": (UINT32, kind)})) as one:
            assert embed(one, TEXT) == embed(one, TEXT, winnow={"pooling": pooling})


@pytest.mark.parametrize("kind", [2, 4])
def test_a_pooling_that_a_causal_network_cannot_have_is_refused(model, work, kind):
    path = write_with_keys(model, f"{work}/encoder.gguf", {"llama.pooling_type": (UINT32, kind)})
    result = subprocess.run([WINNOW, "run", "-m", path, "--raw", "-p", "x"], capture_output=True, text=True, timeout=PATIENCE)
    check_refusal(result, 1, f"llama.pooling_type is {kind}, expected 1 (mean) or 3 (last)")


BAD = [
    ({}, "input", "missing"),
    ({"input": ""}, "input", "empty"),
    ({"input": []}, "input", "1 to 2048"),
    ({"input": [[]]}, "input", "text 1 of input is empty"),
    ({"input": ["x", ""]}, "input", "text 2 of input is empty"),
    ({"input": ["x", 5]}, "input[1]", "string"),
    ({"input": [5, "x"]}, "input[1]", "whole number"),
    ({"input": [5, 99999]}, "input[1]", "from 0 to"),
    ({"input": [[5], [-1]]}, "input[1][0]", "from 0 to"),
    ({"input": 5}, "input", "string"),
    ({"input": {}}, "input", "string"),
    ({"input": ["x"] * 2049}, "input", "1 to 2048"),
    ({"input": "x", "encoding_format": "int8"}, "encoding_format", "base64"),
    ({"input": "x", "dimensions": 0}, "dimensions", "from 1 to"),
    ({"input": "x", "dimensions": 65}, "dimensions", "from 1 to 64"),
    ({"input": "x", "winnow": {"pooling": "cls"}}, "winnow.pooling", "mean, last"),
    ({"input": "x", "winnow": {"kv": "snapkv"}}, "winnow.kv", "pooling"),
]


@pytest.mark.parametrize("body, field, words", BAD)
def test_what_cannot_be_is_refused(server, body, field, words):
    status, reply = server.post(EMBEDDINGS, body)
    error = sentence(reply, words)
    assert status == 400 and error["param"] == field, reply


def test_a_text_beyond_the_context_is_refused(model):
    with Server(model, "--context", "100") as one:
        for text in ("words " * 300, "words " * 60, [5] * 101, ["x", "words " * 60]):
            status, reply = one.post(EMBEDDINGS, {"input": text})
            assert status == 400 and reply["error"]["code"] == "context_length_exceeded", reply


def test_memory_is_promised_as_to_other_requests(model):
    with Server(model, "--context", "100000", "--memory", "4MiB", "--prefix-memory", "0") as one:
        status, reply = one.post(EMBEDDINGS, {"input": "words " * 8000})
        assert status == 400 and reply["error"]["code"] == "insufficient_memory", reply
        (alone,) = embed(one, TEXT)
        assert embed(one, [TEXT] * 500) == [alone] * 500
        one.wait_until_idle()
        assert 'winnow_kv_bytes{' in one.ask("GET", "/metrics")[2].decode()


def test_answers_go_on_beside_them_and_are_the_same(server):
    body = {"prompt": TEXT, "max_tokens": 200, "ignore_eos": True}
    alone, vectors = server.good("/v1/completions", body)["choices"], embed(server, [TEXT] * 3)
    with server.begin_post("/v1/completions", {**body, "max_tokens": 5000, "stream": True}) as client:
        assert client.recv(12).startswith(b"HTTP/1.1 200")
        assert embed(server, [TEXT] * 3) == vectors and server.good("/v1/completions", body)["choices"] == alone
    server.wait_until_idle()


def test_a_client_that_goes_cancels_them(server):
    with server.begin_post(EMBEDDINGS, {"input": ["words " * 3000] * 400}):
        pass
    server.wait_until_idle()


def test_each_has_a_line_in_the_log_and_unknown_fields_are_named(model):
    with Server(model) as one:
        embed(one, TEXT, frobnicate=1)
        one.wait_until_idle()
        said = one.end()[1]
    assert "/v1/embeddings embd-" in said and "status=200" in said and "the field frobnicate of requests is unknown" in said, said
