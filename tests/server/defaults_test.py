# SPDX-License-Identifier: Apache-2.0
"""Sampling without fields in the request: the server's options apply, else the model file's keys, else llama.cpp's
defaults."""

import collections
import re
import subprocess

import pytest
from gguf_keys import BOOL, FLOAT32, INT32, STRING, UINT32, write_with_keys
from program import PATIENCE, WINNOW
from service import Server

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
LLAMA_SERVER = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1}
BODY = {"prompt": "some words to read", "max_tokens": 12, "ignore_eos": True, "seed": 7}
FILE = {
    "general.sampling.temp": (FLOAT32, 1.5),
    "general.sampling.top_k": (INT32, 17),
    "general.sampling.top_p": (FLOAT32, 0.5),
    "general.sampling.min_p": (FLOAT32, 0.125),
    "general.sampling.penalty_repeat": (FLOAT32, 1.25),
}
SAYS = {"temperature": 1.5, "top_k": 17, "top_p": 0.5, "min_p": 0.125, "repetition_penalty": 1.25}


def serving(model, *options):
    return Server(model, "--context", "1000", *options, sampling=())


def told(server):
    """The defaults in /props."""
    settings = server.get("/props")[1]["default_generation_settings"]
    return {name: round(settings[name], 6) for name in LLAMA_SERVER}


def text(server, **fields):
    return server.good(COMPLETION, {**BODY, **fields})["choices"][0]["text"]


def check_defaults(server, expected):
    """Checks that answers without fields equal those with all of these fields, and that /props shows them."""
    assert told(server) == expected
    for seed in range(3):
        assert text(server, seed=seed) == text(server, seed=seed, **expected)
    for name, value in {"temperature": 0.2, "top_k": 1, "top_p": 0, "min_p": 1, "repetition_penalty": 9}.items():
        assert text(server, **{name: value}) == text(server, **{**expected, name: value}), "a request says one field, and the others stay"


def test_as_llama_cpps_server_where_nobody_says_anything(model):
    with serving(model) as server:
        check_defaults(server, LLAMA_SERVER)
        assert len({text(server, seed=seed) for seed in range(4)}) > 1 and len({text(server, temperature=0, seed=seed) for seed in range(4)}) == 1
        unseeded = {name: value for name, value in BODY.items() if name != "seed"}
        assert len({server.good(COMPLETION, unseeded)["choices"][0]["text"] for _ in range(4)}) > 1


def test_as_the_file_says(model, work):
    with serving(write_with_keys(model, f"{work}/says.gguf", FILE)) as server:
        check_defaults(server, SAYS)
        assert "general.sampling" not in server.said()


@pytest.mark.parametrize("name", FILE)
def test_each_key_of_the_file_counts_alone(model, work, name):
    field = dict(zip(FILE, SAYS))[name]
    with serving(write_with_keys(model, f"{work}/one.gguf", {name: FILE[name]})) as server:
        assert told(server) == {**LLAMA_SERVER, field: SAYS[field]}


def test_options_come_before_the_file(model, work):
    path = write_with_keys(model, f"{work}/says.gguf", FILE)
    with serving(path, "--temp", "0.25", "--top-k", "0", "--min-p", "0") as server:
        check_defaults(server, {**SAYS, "temperature": 0.25, "top_k": 0, "min_p": 0})
    with serving(path, "--temp", "0", "--repeat-penalty", "1") as greedy, Server(model) as other:
        assert text(greedy) == text(other, temperature=0), "greedy ignores the rest"


BAD = {
    "not a number": ("general.sampling.temp", (FLOAT32, float("nan"))),
    "infinite": ("general.sampling.temp", (FLOAT32, float("inf"))),
    "negative": ("general.sampling.temp", (FLOAT32, -0.5)),
    "a text": ("general.sampling.temp", (STRING, "hot")),
    "a flag": ("general.sampling.min_p", (BOOL, True)),
    "more than everything": ("general.sampling.top_p", (FLOAT32, 1.5)),
    "too few": ("general.sampling.top_k", (INT32, -7)),
    "too many": ("general.sampling.top_k", (UINT32, 0xFFFFFFFF)),
    "no penalty": ("general.sampling.penalty_repeat", (FLOAT32, 0)),
}


@pytest.mark.parametrize("kind", BAD)
def test_a_value_that_cannot_be_is_ignored_with_a_sentence(model, work, kind):
    name, value = BAD[kind]
    with serving(write_with_keys(model, f"{work}/bad.gguf", {**FILE, name: value})) as server:
        field = dict(zip(FILE, SAYS))[name]
        assert told(server) == {**SAYS, field: LLAMA_SERVER[field]}
        said = [line for line in server.said().splitlines() if "general.sampling" in line]
        assert len(said) == 1 and name in said[0] and "ignored" in said[0] and "nan%" not in said[0], said
        server.good(COMPLETION, BODY)


def test_what_winnow_does_not_do_is_named(model, work):
    other = {"general.sampling.mirostat": (INT32, 2), "general.sampling.xtc_probability": (FLOAT32, 0.5), "general.sampling.\x1b[31m": (INT32, 1), "general.sampling.xtc_threshold": (FLOAT32, 0)}
    with serving(write_with_keys(model, f"{work}/other.gguf", other)) as server:
        assert told(server) == LLAMA_SERVER
        line = next(line for line in server.said().splitlines() if "does not support" in line)
        assert "general.sampling.mirostat" in line and "general.sampling.xtc_probability" in line and "xtc_threshold" not in line and "\x1b" not in line


def chats(model, *options):
    """The answers of four chats to the same message."""
    command = [WINNOW, "chat", "-m", model, "-n", "12", "--ignore-eos", "-q", "--threads", "1", *options]
    return [subprocess.run(command, input=b"hello\n", capture_output=True, check=True, timeout=PATIENCE).stdout for _ in range(4)]


def test_a_chat_samples_in_the_same_way(model, work):
    assert len(set(chats(model))) > 1, "each with a seed of its own"
    assert len(set(chats(model, "--temp", "0"))) == 1
    assert len(set(chats(model, "--seed", "5"))) == 1
    assert chats(model, "--seed", "5") == chats(model, "--seed", "5", "--temp", "0.8", "--top-k", "40", "--top-p", "0.95", "--min-p", "0.05")
    path = write_with_keys(model, f"{work}/chat.gguf", FILE)
    said = ["--temp", "1.5", "--top-k", "17", "--top-p", "0.5", "--min-p", "0.125", "--repeat-penalty", "1.25"]
    assert chats(path, "--seed", "5") == chats(model, "--seed", "5", *said)
    assert set(chats(path, "--temp", "0", "--repeat-penalty", "1")) == set(chats(model, "--temp", "0"))


def test_other_commands_stay_greedy(model, work):
    path = write_with_keys(model, f"{work}/run.gguf", FILE)
    command = [WINNOW, "run", "--raw", "-p", "hello", "-n", "12", "--ignore-eos", "-q", "--threads", "1"]
    answers = collections.Counter(subprocess.run([*command, "-m", one, *more], capture_output=True, check=True, timeout=PATIENCE).stdout for one in (model, path) for more in ([], ["--temp", "0"], ["--seed", "9"]))
    assert len(answers) == 1


def test_the_help_says_so():
    for command in ("serve", "chat"):
        help_ = re.sub(r"\s+", " ", subprocess.run([WINNOW, command, "--help"], capture_output=True, text=True, check=True).stdout)
        assert "0: greedy (default: the model's file, or 0.8)" in help_
