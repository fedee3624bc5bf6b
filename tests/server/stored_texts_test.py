# SPDX-License-Identifier: Apache-2.0
"""Texts that were read are known after a restart and to other servers, and answers are those of reading everything."""

import pathlib
import random
import re
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
from program import WINNOW, wait_for
from redis_server import Redis, needs_redis
from service import Server

CHAT = "/v1/chat/completions"
RULES = " ".join(f"Rule {i}: the ship number {i * i} sails to harbour {i * 7}." for i in range(24))
WAYS = [{"kv": "full"}, {"kv": "snapkv:window=8", "budget": "96"}, *({"kv": kv, "budget": "96"} for kv in ("h2o", "ems", "sage-kv", "auto"))]


def ask(server, turns, way=WAYS[1]):
    """Asks the next question of a conversation after some turns; its text and the tokens that were not read."""
    messages = [{"role": "system", "content": RULES}]
    for i in range(turns):
        messages += [{"role": "user", "content": f"Question {i}?"}, {"role": "assistant", "content": f"Answer {i}."}]
    messages.append({"role": "user", "content": f"Question {turns}?"})
    reply = server.good(CHAT, {"messages": messages, "max_tokens": 10, "ignore_eos": True, "winnow": way})
    return reply["choices"][0]["message"]["content"], reply["usage"]["prompt_tokens_details"]["cached_tokens"]


def measured(server):
    """Values of the metrics about texts, by their last label."""
    lines = re.findall(r'^(winnow_text_\w+)\{.*"(\w+)"\} ([0-9.e+]+)$', server.ask("GET", "/metrics")[2].decode(), re.MULTILINE)
    return {(name, label): float(value) for name, label, value in lines}


@pytest.fixture
def where(tmp_path):
    return tmp_path / "texts"


@pytest.fixture(scope="module")
def cold(model):
    """Answers of a server without memory for texts, by turns."""
    with Server(model, "--context", "10000", "--prefix-memory", "0") as server:
        return {(turns, way["kv"]): ask(server, turns, way)[0] for turns in range(4) for way in WAYS}


def started(model, where, *options):
    return Server(model, "--context", "10000", "--memory", "256MiB", "--texts", str(where), *options)


def stored(where):
    return sorted(path for path in pathlib.Path(where).iterdir() if path.suffix == ".text")


def has_stored(where, blocks):
    return where.exists() and len(stored(where)) >= blocks


def ask_every_way(server, cold):
    """Tokens that were known when each method was asked the second time."""
    for way in WAYS:
        assert ask(server, 0, way)[0] == cold[0, way["kv"]]
    return [ask(server, 0, way)[1] for way in WAYS]


@pytest.fixture(scope="module")
def written(model, cold, tmp_path_factory):
    """Number of blocks and states that a server leaves when it ends by itself."""
    where = tmp_path_factory.mktemp("written") / "texts"
    with started(model, where) as server:
        ask_every_way(server, cold)
        server.end()
    return len(stored(where))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_restarted_server_knows_texts(model, where, cold, written, number):
    with started(model, where) as server:
        cached = ask_every_way(server, cold)
        assert min(cached) > 500
        if number == signal.SIGKILL:
            wait_for(lambda: has_stored(where, written))
        server.end(number)
    with started(model, where) as server:
        for way, found in zip(WAYS, cached):
            assert ask(server, 0, way) == (cold[0, way["kv"]], found), way
        for turns in (1, 2):
            for way in WAYS:
                answer, found = ask(server, turns, way)
                assert answer == cold[turns, way["kv"]] and found > cached[0] - 200, (turns, way)
        values = measured(server)
        assert values["winnow_text_blocks_total", "read"] >= (cached[0] - 200) // 64 and values["winnow_text_blocks_total", "damaged"] == 0
        server.end()
        assert 0 < values["winnow_text_blocks", "folder"] <= len(stored(where)) and values["winnow_text_blocks", "memory"] > 0


def test_metrics_follow_what_is_written_later(model, where):
    with started(model, where) as server:
        ask(server, 0)
        wait_for(lambda: has_stored(where, 8))
        wait_for(lambda: measured(server)["winnow_text_blocks", "folder"] == len(stored(where)))


def test_what_is_damaged_is_read_anew(model, where, cold):
    with started(model, where) as server:
        ask(server, 0)
        server.end()
    chosen = random.Random(5)
    for _ in range(6):
        for path in chosen.sample(stored(where), 2):
            data = bytearray(path.read_bytes())
            data[chosen.randrange(len(data))] ^= 1 << chosen.randrange(8)
            path.write_bytes(data)
        with started(model, where) as server:
            assert ask(server, 0)[0] == cold[0, WAYS[1]["kv"]]
            assert "is damaged" in server.said()
            server.end()


def test_two_servers_share_a_folder(model, where, cold):
    with started(model, where) as one, started(model, where) as other:
        assert ask(one, 0)[1] == 0
        _, cached = ask(one, 0)
        wait_for(lambda: has_stored(where, cached // 64))
        for turns in range(1, 4):
            for server in (other, one):
                answer, found = ask(server, turns)
                assert answer == cold[turns, WAYS[1]["kv"]] and found > cached - 200


def test_a_folder_keeps_what_memory_cannot(model, where, cold):
    with started(model, where, "--prefix-memory", "1MiB") as server:
        for i in range(6):
            server.good("/v1/completions", {"prompt": f"{i} other words " * 40, "max_tokens": 1})
        ask(server, 0)
        for i in range(6):
            server.good("/v1/completions", {"prompt": f"{i} more words " * 40, "max_tokens": 1})
        answer, found = ask(server, 1)
        assert answer == cold[1, WAYS[1]["kv"]] and found > 64


def test_the_folder_has_a_limit(model, where):
    with started(model, where, "--texts-size", "1MiB") as server:
        for i in range(12):
            server.good("/v1/completions", {"prompt": f"{i} other words " * 40, "max_tokens": 1})
        server.end()
    assert 0 < sum(path.stat().st_size for path in stored(where)) <= 1 << 20


def test_a_folder_that_goes_away_changes_no_answer(model, where, cold):
    with started(model, where) as server:
        (where / "winnow-texts-1").unlink()
        where.rmdir()
        for turns in range(3):
            assert ask(server, turns)[0] == cold[turns, WAYS[1]["kv"]]
        wait_for(lambda: "cannot write the texts in" in server.said())
        code, said = server.end()
    assert code == 0 and said.count("answers go on without") == 1 and not where.exists()


def refused(model, *options):
    result = subprocess.run([WINNOW, "serve", "-m", model, "--port", "0", *options], capture_output=True, text=True, timeout=60)
    assert result.returncode == 2 and len(result.stderr.splitlines()) == 1, result.stderr
    return result.stderr


def test_other_places_are_refused(model, where):
    where.mkdir()
    (where / "thesis.txt").write_text("mine")
    assert "it has other files (thesis.txt); name an empty folder" in refused(model, "--texts", str(where))
    assert "--texts-size 1GiB is for a folder of --texts" in refused(model, "--texts-size", "1GiB")
    assert "maxmemory" in refused(model, "--texts", "redis://127.0.0.1:1", "--texts-size", "1GiB")
    assert "if they also have memory" in refused(model, "--texts", str(where), "--prefix-memory", "0")
    assert "--text-type" in refused(model, "--text-type", "q4_0")
    assert "give a folder or redis" in refused(model, "--texts", "http://127.0.0.1")
    assert [path.name for path in where.iterdir()] == ["thesis.txt"]


@needs_redis
def test_a_second_server_finds_texts_in_redis(model, cold):
    with Redis() as redis, started(model, redis.url(0)) as one, started(model, redis.url(0)) as other:
        ask_every_way(one, cold)
        one.end()  # everything is written
        for turns in (0, 1):
            for way in WAYS:
                answer, found = ask(other, turns, way)
                assert answer == cold[turns, way["kv"]] and found > 500, (turns, way)


@needs_redis
def test_redis_may_go_and_come_back(model, cold):
    with Redis() as redis, started(model, redis.url(0)) as server:
        ask(server, 0)
        redis.stop()
        for turns in (1, 2):
            assert ask(server, turns)[0] == cold[turns, WAYS[1]["kv"]]
        server.good("/v1/completions", {"prompt": "another text " * 60, "max_tokens": 1})
        wait_for(lambda: "answers go on without" in server.said())
        assert server.said().count("answers go on without") == 1
        redis.start()
        assert ask(server, 3)[0] == cold[3, WAYS[1]["kv"]]


@needs_redis
def test_a_redis_that_hangs_is_not_waited_for(model, cold):
    with Redis() as redis, started(model, redis.url(0)) as server:
        redis.process.send_signal(signal.SIGSTOP)
        for turns in range(4):
            assert ask(server, turns)[0] == cold[turns, WAYS[1]["kv"]]
        assert server.said().count("have not come for 2000 ms; answers go on without") == 1
        redis.process.send_signal(signal.SIGCONT)


@needs_redis
def test_requests_without_stored_texts_do_not_wait_for_those_of_others(model, cold):
    with Redis() as redis, started(model, redis.url(0)) as server, ThreadPoolExecutor(1) as clients:
        redis.process.send_signal(signal.SIGSTOP)
        waits = clients.submit(ask, server, 0)
        wait_for(lambda: server.get("/slots")[1])
        server.good("/v1/completions", {"prompt": "short", "max_tokens": 1})
        assert not waits.done() and [slot["phase"] for slot in server.get("/slots")[1]] == ["waiting"]
        assert waits.result()[0] == cold[0, WAYS[1]["kv"]]
        redis.process.send_signal(signal.SIGCONT)


@needs_redis
def test_a_redis_that_hangs_does_not_delay_the_end_for_long(model):
    with Redis() as redis, started(model, redis.url(0)) as server:
        ask(server, 0)
        redis.process.send_signal(signal.SIGSTOP)
        ask(server, 1)
        assert server.end()[0] == 0
        redis.process.send_signal(signal.SIGCONT)
