# SPDX-License-Identifier: Apache-2.0
"""Requests take no more memory than what is counted for them."""

import concurrent.futures
import json
import pathlib
import re

import pytest
from program import ADDRESS_SANITIZED
from service import Server, sentence

pytestmark = pytest.mark.skipif(ADDRESS_SANITIZED, reason="it keeps what was freed")
CHAT = "/v1/chat/completions"
MIB = 1 << 20
BODY = 8 * MIB


def chat(**fields):
    return CHAT, {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 0, **fields}


def fields_of(path, text):
    return path, (json.dumps(chat()[1])[:-1] + ", " + text + "}").encode()


def repeated(text, size=BODY - 2000):
    return text * (size // len(text))


# Bodies of 8 MiB that take many times as much memory when parsed, or that are kept for each of many answers.
GREEDY = {
    "lists in an unknown field": fields_of(CHAT, '"junk": [' + repeated("[],") + "[]]"),
    "objects in an unknown field": fields_of(CHAT, '"junk": [' + repeated("{},") + "{}]"),
    "members of an unknown object": fields_of(CHAT, '"junk": {' + ",".join(f'"{i}":0' for i in range(600_000)) + "}"),
    "numbers": ("/detokenize", ('{"tokens": [' + repeated("5,") + "5]}").encode()),
    "messages": (CHAT, ('{"messages": [' + repeated('{"role":"user","content":""},') + "{}]}").encode()),
    "tools": fields_of(CHAT, '"tools": [' + repeated("{},") + "{}]"),
    "texts": ("/tokenize", ('{"return_token_strs": true, "prompt": "' + repeated("a b ") + '"}').encode()),
    "stops": (CHAT, json.dumps(chat(n=64, stop=["x" * 1024] * 64)[1]).encode()),
    "stop tokens": (CHAT, json.dumps(chat(n=64, stop_token_ids=[5] * 1024)[1]).encode()),
    "a salt": (CHAT, json.dumps(chat(cache_salt="x" * (BODY - 2000))[1]).encode()),
}


def resident(server, name):
    return int(re.search(rf"{name}:\s+(\d+) kB", pathlib.Path(f"/proc/{server.process.pid}/status").read_text())[1]) << 10


@pytest.mark.parametrize("name", GREEDY)
def test_what_requests_bring_is_a_part_of_memory(model, name):
    """Eight requests at once take only their bodies and the memory counted by --memory; each is answered or refused
    with a message."""
    memory, path, body = 256 * MIB, *GREEDY[name]
    with Server(model, "--context", "4000", "--memory", "256MiB", "--max-body", "8MiB") as server:
        before = resident(server, "VmHWM")
        with concurrent.futures.ThreadPoolExecutor(8) as clients:
            replies = list(clients.map(lambda _: server.post(path, body), range(8)))
        for status, reply in replies:
            assert status == 200 or (status in (400, 413, 429) and sentence(reply)), reply
        assert resident(server, "VmHWM") - before <= memory // 10 + 8 * len(body) + 24 * MIB
        server.good(*chat())
