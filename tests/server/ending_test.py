# SPDX-License-Identifier: Apache-2.0
"""The start and the end of a server, and its refusals under too much load."""

import concurrent.futures
import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import threading

import pytest
from program import PATIENCE, WINNOW, check_refusal
from service import Server, post_bytes, read_head, sentence, wait_for

COMPLETION = "/v1/completions"
LONG = {"prompt": "hello", "max_tokens": 90_000, "ignore_eos": True, "stream": True}


def refuse(*arguments, code, parts):
    result = subprocess.run([WINNOW, "serve", *arguments], capture_output=True, text=True, timeout=PATIENCE)
    check_refusal(result, code, *parts)


def start(server, body):
    """Begins a stream; returns the connection and a file to read from."""
    client = server.begin_post(COMPLETION, body)
    stream = client.makefile("rb")
    assert read_head(stream)[0] == 200
    return client, stream


def test_a_port_that_is_taken_is_a_sentence(model):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        port = str(taken.getsockname()[1])
        refuse("-m", model, "--port", port, code=1, parts=["port", port, "is in use", "--port"])


def test_what_cannot_be_is_refused(model, work):
    empty = f"{work}/empty"
    with open(empty, "w") as file:
        file.write("# nothing\n")
    refuse("-m", model, "--host", "no.such.host.invalid", "--port", "0", code=1, parts=["no.such.host.invalid"])
    refuse("-m", f"{work}/absent.gguf", code=1, parts=["absent.gguf"])
    refuse("-m", empty, code=1, parts=["empty"])
    refuse("-m", model, "--api-key-file", empty, code=1, parts=["no key"])
    refuse("-m", model, "--api-key-file", f"{work}/absent", code=1, parts=["absent"])
    refuse("-m", model, "--api-key", "", code=2, parts=["--api-key"])
    refuse("-m", model, "--memory", "much", code=2, parts=["--memory", "much"])
    refuse("-m", model, "--sessions", "redis://127.0.0.1:1", code=1, parts=["the sessions in redis://127.0.0.1:1 cannot be reached"])
    refuse("-m", model, "--documents", "redis://127.0.0.1:1", code=1, parts=["the documents in redis://127.0.0.1:1 cannot be reached"])
    refuse("-m", model, "--max-body", "10%", code=2, parts=["--max-body", "10%"])
    refuse("-m", model, "--kv", "snapkv", code=2, parts=["budget"])
    refuse("-m", model, "--kv", "snapky", code=2, parts=["did you mean snapkv"])
    refuse("-m", model, "--port", "70000", code=2, parts=["70000"])
    refuse("-m", model, "--max-queue-tokens", "0", code=2, parts=["--max-queue-tokens"])
    refuse("-m", model, "--parallel", "0", code=2, parts=["--parallel"])
    refuse("--port", "0", code=2, parts=["WINNOW_MODEL"])


def test_a_model_that_cannot_be_loaded_opens_no_port(work):
    """The port is taken, but the error is about the model, which is loaded first."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        refuse("-m", f"{work}/absent.gguf", "--port", str(taken.getsockname()[1]), code=1, parts=["absent.gguf"])


def test_memory_in_which_no_request_fits_is_refused(model):
    """With the memory that the message names, the smallest request is answered."""
    options = ["--prefix-memory", "0", "--memory"]
    result = subprocess.run([WINNOW, "serve", "-m", model, *options, "1KiB"], capture_output=True, text=True, timeout=PATIENCE)
    check_refusal(result, 2, "--memory 1.0 KiB is too small", "0 B", "--prefix-memory")
    least = int(re.search(r" need (\d+)KiB", result.stderr)[1])
    refuse("-m", model, *options, f"{least - 1}KiB", code=2, parts=[f" need {least}KiB"])
    with Server(model, *options, f"{least}KiB") as one:
        assert one.good(COMPLETION, {"prompt": [5], "max_tokens": 1})["usage"]["completion_tokens"] == 1


def test_a_context_beyond_the_models_is_a_warning(model):
    with Server(model) as one:
        trained = one.get("/v1/models")[1]["data"][0]["max_model_len"]
        assert "warning" not in one.said()
    for context in (trained, trained + 1):
        with Server(model, "--context", str(context)) as one:
            said = one.said()
        assert (f"warning: --context {context} is more than the model's context of {trained} tokens: " in said) == (context > trained), said


@pytest.mark.parametrize("host, reached", [("0.0.0.0", "127.0.0.1"), ("::", "[::1]")])
def test_the_address_of_all_addresses_can_be_used(model, host, reached):
    """Without a key, the server warns that everybody can use it."""
    if host == "::" and not socket.has_dualstack_ipv6():
        pytest.skip("there is no IPv6")
    for keys in ([], ["--api-key", "secret"]):
        with Server(model, "--host", host, *keys) as one:
            said = one.said()
            assert f"listening on http://{reached}:{one.port}, try: curl http://{reached}:{one.port}/v1/" in said, said
            one.host = reached.strip("[]")
            assert one.get("/health") == (200, {"status": "ok"})
        assert ("warning: " in said and "has no key" in said and host in said) == (not keys), said
        assert ("-H 'Authorization: Bearer KEY'" in said) == bool(keys) and "secret" not in said, said
    with Server(model) as one:
        assert "warning" not in one.said()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_an_idle_server_ends_at_once(model, number):
    with Server(model) as one:
        idle = one.connect()
        code, said = one.end(number)
        idle.close()
    assert code == 0 and said.count("\n") == 1, said


def test_running_requests_end_first(model):
    """After the signal the server is unhealthy and refuses new requests, but a running answer is completed."""
    with Server(model, "--context", "100000", "--drain-timeout", "600") as one:
        client, stream = start(one, {**LONG, "max_tokens": 4_000})
        one.process.send_signal(signal.SIGTERM)
        wait_for(lambda: "finished first" in one.said())  # counted before the next request comes
        assert one.get("/health")[0] == 503
        assert sentence(one.get("/v1/health")[1], "shutting down")["type"] == "unavailable_error"
        status, headers, body = one.ask("POST", COMPLETION, json.dumps({"prompt": "x"}))
        assert status == 503 and 1 <= int(headers["Retry-After"]) <= 600 and "shutting down" in sentence(json.loads(body))["message"]
        rest = stream.read()
        assert rest.count(b"\ndata: ") > 10 and b"data: [DONE]" in rest and b"error" not in rest
        one.process.wait(timeout=PATIENCE)
        said = one.said()
        client.close()
    assert one.process.returncode == 0 and re.search(r"^\S+ info: 1 request is finished first, for up to 600 s; another Ctrl-C or SIGTERM stops at once$", said, re.MULTILINE), said


def test_requests_that_take_too_long_end_with_an_error(model):
    with Server(model, "--context", "100000", "--drain-timeout", "0") as one:
        client, stream = start(one, LONG)
        code, _ = one.end()
        rest = stream.read()
        client.close()
    assert code == 0 and b'data: {"error":{"message":"the server is shutting down' in rest and b"[DONE]" not in rest


def test_a_second_signal_stops_at_once(model):
    with Server(model, "--context", "100000") as one:
        client, stream = start(one, LONG)
        one.process.send_signal(signal.SIGINT)
        wait_for(lambda: one.get("/health")[0] == 503)
        code, _ = one.end(signal.SIGINT)
        stream.close()
        client.close()
    assert code == 130


def test_too_many_requests_are_told_to_come_back(model):
    with Server(model, "--context", "100000", "--parallel", "1", "--max-queue-requests", "1") as one:
        clients = [start(one, LONG)[0] for _ in range(2)]
        status, headers, body = one.ask("POST", COMPLETION, json.dumps({**LONG, "stream": False}))
        error = sentence(json.loads(body), "try again later")
        assert status == 429 and error["type"] == "rate_limit_error" and error["code"] == "rate_limit_exceeded"
        assert 1 <= int(headers["Retry-After"]) <= 120
        assert [slot["phase"] for slot in one.get("/slots")[1]] == ["answering", "waiting"]
        assert one.post(COMPLETION, {"prompt": ["a", "b", "c"]})[0] == 429, "all of a list, or nothing"
        for client in clients:
            client.close()
        one.wait_until_idle()
        assert one.post(COMPLETION, {"prompt": ["a", "b"], "max_tokens": 1})[0] == 200


def test_too_many_tokens_that_wait_are_told_to_come_back(model):
    """A prompt longer than the whole limit is accepted if no other prompt waits."""

    def post(count, **fields):
        status, headers, body = one.ask("POST", COMPLETION, json.dumps({"prompt": [5] * count, "max_tokens": 1, **fields}))
        return status, headers, json.loads(body)

    with Server(model, "--context", "100000", "--parallel", "1", "--max-queue-tokens", "100") as one:
        assert post(500)[0] == 200 and post(500)[0] == 200
        clients = [start(one, LONG)[0]]
        wait_for(lambda: [slot["phase"] for slot in one.get("/slots")[1]] == ["answering"])
        clients.append(start(one, {**LONG, "prompt": [5] * 60})[0])
        status, headers, reply = post(41)
        error = sentence(reply, "60", "41", "100")
        assert status == 429 and error["code"] == "rate_limit_exceeded" and 1 <= int(headers["Retry-After"]) <= 120
        assert one.post(COMPLETION, {"prompt": [[5] * 20, [5] * 21]})[0] == 429, "all of a list, or nothing"
        clients.append(start(one, {**LONG, "prompt": [5] * 40})[0])
        assert post(1)[0] == 429
        for client in clients[1:]:
            client.close()
        wait_for(lambda: len(one.get("/slots")[1]) == 1)
        clients.append(start(one, {**LONG, "prompt": [5] * 500})[0])
        assert post(1)[0] == 429
        for client in clients:
            client.close()
        one.wait_until_idle()
        assert post(1)[0] == 200


def test_what_never_fits_into_the_memory_is_refused(model):
    with Server(model, "--context", "100000", "--memory", "4MiB", "--prefix-memory", "0") as one:
        status, reply = one.post(COMPLETION, {"prompt": "words " * 2000, "max_tokens": 5})
        error = sentence(reply, "4.0 MiB")
        assert status == 400 and error["code"] == "insufficient_memory"
        assert one.good(COMPLETION, {"prompt": "words", "max_tokens": 5})["choices"]


AS_MUCH_AS_POSSIBLE = {"prompt": "words", "max_tokens": 90_000, "ignore_eos": True}


def lowered(reply):
    return reply["winnow"].get("max_tokens"), reply["winnow"].get("max_tokens_lowered_by")


def test_an_answer_is_as_long_as_memory_holds_and_says_so(model):
    with Server(model, "--context", "100000", "--memory", "2MiB", "--prefix-memory", "0") as one:
        reply = one.good(COMPLETION, AS_MUCH_AS_POSSIBLE)
        most, by = lowered(reply)
        assert by == "memory" and most == reply["usage"]["completion_tokens"] and 100 < most < 90_000, reply["winnow"]
        assert reply["choices"][0]["finish_reason"] == "length"
        same = one.good(COMPLETION, {**AS_MUCH_AS_POSSIBLE, "max_tokens": most})
        assert lowered(same) == (None, None) and same["choices"] == reply["choices"]
        assert lowered(one.good(COMPLETION, {**AS_MUCH_AS_POSSIBLE, "max_tokens": most + 1})) == (most, "memory")
        assert lowered(one.stream(COMPLETION, AS_MUCH_AS_POSSIBLE)[-1]) == (most, "memory")
        two = lowered(one.good(COMPLETION, {**AS_MUCH_AS_POSSIBLE, "n": 2, "min_tokens": 80_000}))
        assert two[1] == "memory" and most / 3 < two[0] < most / 2
        chat = {"messages": [{"role": "user", "content": "words"}], "max_completion_tokens": 32_000, "ignore_eos": True}
        assert lowered(one.good("/v1/chat/completions", chat))[1] == "memory"
        assert one.good(COMPLETION, {"prompt": "words", "max_tokens": 90_000, "logit_bias": {"2": 100}})["choices"][0]["finish_reason"] == "stop"


def test_what_else_runs_does_not_shorten_answers(model):
    with Server(model, "--context", "100000", "--memory", "2MiB", "--prefix-memory", "0") as one:
        alone = lowered(one.good(COMPLETION, AS_MUCH_AS_POSSIBLE))
        with concurrent.futures.ThreadPoolExecutor(4) as clients:
            replies = list(clients.map(lambda _: one.good(COMPLETION, AS_MUCH_AS_POSSIBLE), range(4)))
        assert [lowered(reply) for reply in replies] == [alone] * 4, "they wait for each other, and all are answered"


def test_an_answer_is_as_long_as_the_context_holds_and_says_so(model):
    with Server(model, "--context", "100") as one:
        reply = one.good(COMPLETION, {**AS_MUCH_AS_POSSIBLE, "prompt": [5] * 60})
        assert lowered(reply) == (40, "context") and reply["usage"]["completion_tokens"] == 40
        assert lowered(one.good(COMPLETION, {**AS_MUCH_AS_POSSIBLE, "prompt": [[5] * 60, [5] * 70]})) == (30, "context")
        assert lowered(one.good(COMPLETION, {"prompt": "words", "max_tokens": 5})) == (None, None)


def test_many_clients_at_once(model):
    """All requests are answered, and all connections are closed in the end."""
    with Server(model) as one:
        clients = [one.connect() for _ in range(400)]
        for client in clients[:60]:
            client.sendall(post_bytes(COMPLETION, {"prompt": "hello", "max_tokens": 1}))
        for client in clients[:60]:
            with client.makefile("rb") as stream:
                assert read_head(stream)[0] == 200
        for client in clients:
            client.close()
        one.wait_until_idle()
        assert len(os.listdir(f"/proc/{one.process.pid}/fd")) < 100


def test_random_clients_leave_nothing(model):
    """Clients send requests, read a part and leave at random; afterwards the server is as before."""
    with Server(model, "--context", "100000") as one:
        alone = one.good(COMPLETION, {"prompt": "hello", "max_tokens": 30, "ignore_eos": True})["choices"]

        def work(seed):
            dice = random.Random(seed)
            for _ in range(8):
                body = {"prompt": "words " * dice.randrange(1, 200), "max_tokens": dice.randrange(2000), "ignore_eos": True, "stream": dice.random() < 0.5}
                with contextlib.closing(one.connect()) as client:
                    client.sendall(post_bytes(COMPLETION, body)[: dice.choice([50, 10_000])])
                    client.settimeout(dice.random() / 5)
                    with contextlib.suppress(TimeoutError):
                        while client.recv(1000):
                            pass

        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(8)]
        for thread in threads:
            thread.start()
        assert one.good(COMPLETION, {"prompt": "hello", "max_tokens": 30, "ignore_eos": True})["choices"] == alone
        for thread in threads:
            thread.join()
        one.wait_until_idle()
        assert one.end()[0] == 0
