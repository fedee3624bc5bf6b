# SPDX-License-Identifier: Apache-2.0
"""Kept positions of finished requests: they equal those of `winnow run` for the same prompt."""

import json
import os
import subprocess

import pytest
from program import PATIENCE, WINNOW
from service import Server, sentence

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
TEXT = "some words to read, and then some more of them " * 4
METHODS = [
    {"kv": "snapkv:window=8", "budget": "40"},
    {"kv": "ada-snapkv:window=8", "budget": "40", "kv_type": "q8_0"},
    {"kv": "streaming-llm", "budget": "30%"},
    {"kv": "h2o", "budget": "50"},
    {"kv": "pyramidkv:window=8", "budget": "40"},
]


def dumped(model, work, *arguments, **keeping):
    """The kept positions that `winnow run` writes for the text and the question."""
    names = {"kv": "--kv", "budget": "--budget", "kv_type": "--kv-type", "protocol": "--protocol"}
    options = [word for name, value in keeping.items() for word in (names[name], value)]
    path = f"{work}/kept.json"
    with open(f"{work}/text.txt", "w") as file:
        file.write(TEXT)
    command = [WINNOW, "run", "-m", model, "-q", "--threads", "1", "-n", "1", "-f", f"{work}/text.txt", "--dump-kept", path, *options, *arguments]
    subprocess.run(command, check=True, capture_output=True, timeout=PATIENCE)
    with open(path) as file:
        kept = json.load(file)
    os.remove(path)
    return kept


def text_of(kept):
    """The text of the pieces. The tiny model's vocabulary uses a special character for a space, and texts begin with
    one."""
    return "".join(kept["pieces"]).removeprefix("<s>").replace("▁", " ").removeprefix(" ")


def kept_of(server, reply, **headers):
    status, out = server.get(f"/winnow/requests/{reply['id']}/kept", **headers)
    assert status == 200, out
    assert out["id"] == reply["id"] and out["object"] == "winnow.kept"
    return out


def positions(runs):
    assert all(first <= last for first, last in runs) and all(a[1] + 1 < b[0] for a, b in zip(runs, runs[1:])), runs
    return [position for first, last in runs for position in range(first, last + 1)]


def check_same(kept, record, reply):
    assert [[positions(head) for head in layer] for layer in kept["layers"]] == record["layers"]
    assert kept["compressed_tokens"] == record["n_prompt"] and kept["spec"] == record["spec"]
    heads = [len(head) for layer in record["layers"] for head in layer]
    assert kept["entries_per_head"] == reply["winnow"]["entries_per_head"] == pytest.approx(sum(heads) / len(heads))
    assert kept["budget"] == reply["winnow"]["budget"]
    assert kept["prompt_tokens"] == len(kept["pieces"]) == reply["usage"]["prompt_tokens"]


@pytest.mark.parametrize("keeping", METHODS)
def test_positions_are_those_of_run(server, model, work, keeping):
    reply = server.good(COMPLETION, {"prompt": TEXT, "max_tokens": 30, "ignore_eos": True, "winnow": keeping})
    kept = kept_of(server, reply)
    check_same(kept, dumped(model, work, "--raw", **keeping), reply)
    assert text_of(kept) == TEXT


@pytest.mark.parametrize("protocol", ["question-aware", "question-agnostic"])
@pytest.mark.parametrize("keeping", METHODS)
def test_positions_of_a_chat_are_those_of_run(server, model, work, keeping, protocol):
    """The second request finds the text and does not read it."""
    parts = [{"type": "text", "text": TEXT + "\n"}, {"type": "text", "text": "and?"}]
    body = {"messages": [{"role": "user", "content": parts}], "max_tokens": 3, "winnow": {**keeping, "protocol": protocol}}
    record = dumped(model, work, "-p", "and?", "--protocol", protocol, **keeping)
    for reply in (server.good(CHAT, body), server.good(CHAT, body)):
        kept = kept_of(server, reply)
        check_same(kept, record, reply)
        assert (kept["compressed_tokens"] < kept["prompt_tokens"]) == (protocol == "question-agnostic")
        rendered = server.good("/apply-template", {"messages": body["messages"]})["prompt"]
        assert "".join(text_of(kept).split()) == "".join(rendered.split()), "spaces beside control tokens differ"


def test_a_stream_is_remembered_when_it_has_ended(server):
    body = {"prompt": TEXT, "max_tokens": 5, "winnow": METHODS[0]}
    events = server.stream(COMPLETION, body)
    assert kept_of(server, events[0])["layers"] == kept_of(server, server.good(COMPLETION, body))["layers"]


def test_characters_of_several_tokens_are_not_cut(server):
    text = "Ein Schneemann: ☃, naïve 北京. " * 8
    kept = kept_of(server, server.good(COMPLETION, {"prompt": text, "max_tokens": 1, "winnow": METHODS[0]}))
    assert text_of(kept) == text and "" in kept["pieces"]


def test_the_first_prompt_is_remembered(server):
    alone = kept_of(server, server.good(COMPLETION, {"prompt": TEXT, "max_tokens": 1, "winnow": METHODS[0]}))
    both = kept_of(server, server.good(COMPLETION, {"prompt": [TEXT, TEXT + "more"], "max_tokens": 1, "n": 2, "winnow": METHODS[0]}))
    assert both["layers"] == alone["layers"] and both["pieces"] == alone["pieces"]


def check_unknown(server, request, **headers):
    status, reply = server.get(f"/winnow/requests/{request}/kept", **headers)
    assert status == 404 and request in sentence(reply)["message"]
    return reply["error"]["message"].replace(request, "ID")


def test_what_is_not_remembered(server):
    without_budget = server.good(COMPLETION, {"prompt": TEXT, "max_tokens": 1})["id"]
    assert check_unknown(server, without_budget) == check_unknown(server, "cmpl-0123456789abcdef")
    for path in ("/winnow/requests//kept", "/winnow/requests/a/b/kept", "/winnow/requests/kept", "/winnow/requests/a"):
        assert server.get(path)[0] == 404, path
    assert server.post("/winnow/requests/a/kept", {})[0] == 405


def test_only_the_last_requests_are_remembered(server):
    replies = [server.good(COMPLETION, {"prompt": TEXT, "max_tokens": 1, "winnow": METHODS[0]}) for _ in range(65)]
    check_unknown(server, replies[0]["id"])
    kept_of(server, replies[1])


def test_others_are_not_told_that_it_exists(model):
    with Server(model, "--context", "2000", "--api-key", "mine", "--api-key", "yours") as server:
        reply = server.good(COMPLETION, {"prompt": TEXT, "max_tokens": 1, "winnow": METHODS[0]}, X_Api_Key="mine")
        kept_of(server, reply, Authorization="Bearer mine")
        assert check_unknown(server, reply["id"], X_Api_Key="yours") == check_unknown(server, "cmpl-0", X_Api_Key="yours")
        assert server.get(f"/winnow/requests/{reply['id']}/kept")[0] == 401
