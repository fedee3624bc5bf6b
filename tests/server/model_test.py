# SPDX-License-Identifier: Apache-2.0
"""The default model gives the same answers behind the server and alone. Its path is in WINNOW_TEST_MODEL."""

import json
import os
import pathlib
import subprocess
import threading

import pytest
from program import PATIENCE, WINNOW
from service import Server

MODEL = os.environ.get("WINNOW_TEST_MODEL")
pytestmark = pytest.mark.skipif(not MODEL, reason="WINNOW_TEST_MODEL is not set")
QUESTION = "What did the young Princess Bolkonskaya bring her work in?"
METHODS = [{}, {"kv": "snapkv", "budget": "128"}, {"kv": "streaming-llm", "budget": "10%"}, {"kv": "h2o", "budget": 128, "protocol": "question-agnostic"}]


@pytest.fixture(scope="module")
def text():
    return (pathlib.Path(__file__).resolve().parents[2] / "examples/demo/war-and-peace.txt").read_text()[:3000]


@pytest.fixture(scope="module")
def server():
    with Server(MODEL) as one:
        yield one
        one.wait_until_idle()


def run(work, text, keeping):
    with open(f"{work}/text.txt", "w") as file:
        file.write(text)
    names = {"kv": "--kv", "budget": "--budget", "protocol": "--protocol"}
    options = [word for name, value in keeping.items() for word in (names[name], str(value))]
    command = [WINNOW, "run", "-m", MODEL, "-f", f"{work}/text.txt", "-p", QUESTION, "-n", "24", "--threads", "1", "--json", *options]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def ask(server, text, keeping):
    parts = [{"type": "text", "text": text + "\n"}, {"type": "text", "text": QUESTION}]
    return server.good("/v1/chat/completions", {"messages": [{"role": "user", "content": parts}], "max_tokens": 24, "winnow": keeping})


def test_answers_at_once_are_those_of_run(server, work, text):
    replies = [None] * len(METHODS)

    def one(i):
        replies[i] = ask(server, text, METHODS[i])

    threads = [threading.Thread(target=one, args=(i,)) for i in range(len(METHODS))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for keeping, reply in zip(METHODS, replies):
        record = run(work, text, keeping)
        assert reply["choices"][0]["message"]["content"] == record["answer"], keeping
        assert reply["winnow"]["bytes_held"] == record["cache"]["bytes_held"], keeping


def test_a_stream_has_whole_characters(server, text):
    messages = [{"role": "user", "content": "Write the word naïve and a snowman."}]
    body = {"messages": messages, "max_tokens": 40, "temperature": 1, "seed": 3}
    whole = server.good("/v1/chat/completions", body)["choices"][0]["message"]["content"]
    pieces = [event["choices"][0]["delta"].get("content", "") for event in server.stream("/v1/chat/completions", body)]
    assert "".join(pieces) == whole and len(pieces) > 3


def test_a_message_is_gone_on_with(server):
    messages = [{"role": "user", "content": "What is the capital of France?"}, {"role": "assistant", "content": "It is the city of"}]
    rendered = server.good("/apply-template", {"messages": messages, "continue_final_message": True})["prompt"]
    assert rendered.endswith("assistant\nIt is the city of")
    body = {"max_tokens": 20}
    by_chat = server.good("/v1/chat/completions", {"messages": messages, "continue_final_message": True, "add_generation_prompt": False, **body})
    by_text = server.good("/v1/completions", {"prompt": rendered, **body})
    assert by_chat["choices"][0]["message"]["content"] == by_text["choices"][0]["text"]
    assert by_chat["usage"]["prompt_tokens"] == by_text["usage"]["prompt_tokens"]
