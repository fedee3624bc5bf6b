# SPDX-License-Identifier: Apache-2.0
"""The log has a line for each request when it ends."""

import contextlib
import json
import re
import socket
import subprocess

import pytest
from program import PATIENCE, WINNOW
from service import Client, Server, sentence, wait_for

COMPLETION = "/v1/completions"
LONG = {"prompt": "hello", "max_tokens": 90_000, "ignore_eos": True, "stream": True}


@pytest.fixture
def keys(work):
    with open(f"{work}/keys", "w") as file:
        file.write("alice:first-secret\nsecond-secret\n# bob:no\na key:with-secret\n")
    return f"{work}/keys"


def lines_of(server, count):
    """The requests in a JSON log, as soon as there are `count`."""
    wait_for(lambda: sum('"path"' in line for line in server.said().splitlines()) >= count)
    lines = [json.loads(line) for line in server.said().splitlines()]
    out = [line for line in lines if "path" in line]
    assert len(out) == count, out
    return out


def serve(model, port):
    return [WINNOW, "serve", "-m", model, "--port", str(port), "--threads", "1"]


def test_a_line_says_what_the_answer_says(model):
    with Server(model, "--log-format", "json") as one:
        body = {"prompt": ["words " * 20, "more words"], "max_tokens": 3, "n": 2, "ignore_eos": True, "temperature": 1, "winnow": {"kv": "snapkv", "budget": 64}}
        reply = one.good(COMPLETION, body)
        (line,) = lines_of(one, 1)
    timings = reply["timings"]
    for name, expected in {
        "path": COMPLETION, "id": reply["id"], "key": None, "status": 200, "finish": "length", "reason": None, "message": None,
        "prompt_tokens": reply["usage"]["prompt_tokens"], "cached_tokens": 0, "completion_tokens": 12,
        "spec": "snapkv", "budget": "64", "bytes_held": reply["winnow"]["bytes_held"],
        "queue_ms": timings["queue_ms"], "read_ms": timings["prompt_ms"], "answer_ms": timings["predicted_ms"],
    }.items():  # fmt: skip
        assert line[name] == (pytest.approx(expected, abs=0.001) if name.endswith("_ms") else expected), name
    assert line["time"] > 1.6e9


def test_all_lines_of_a_json_log_are_json(model):
    with Server(model, "--log-format", "json") as one:
        one.good(COMPLETION, {"prompt": "x", "max_tokens": 1, 'of\nno "use"': 1})
        lines_of(one, 1)
        code, said = one.end()
    first, *rest = (json.loads(line) for line in said.splitlines())
    assert code == 0 and first["level"] == "info" and first["message"].startswith("listening on http://") and first["time"] > 1.6e9
    assert any('no "use"' in line.get("message", "") for line in rest if "level" in line)


def test_keys_have_names_and_stay_secret(model, keys):
    with Server(model, "--log-format", "json", "--api-key", "zeroth-secret", "--api-key-file", keys) as one:
        for key in ("zeroth-secret", "first-secret", "second-secret", "a key:with-secret"):
            one.good(COMPLETION, {"prompt": "x", "max_tokens": 1}, Authorization=f"Bearer {key}")
        assert one.post(COMPLETION, {"prompt": "x"}, Authorization="Bearer wrong-secret")[0] == 401
        assert [line["key"] for line in lines_of(one, 5)] == ["key-1", "alice", "key-3", "key-4", None]
        assert "secret" not in one.said()


def test_what_was_cancelled_or_refused_has_a_line(model):
    with Server(model, "--context", "100000", "--parallel", "1", "--max-queue-requests", "1", "--log-format", "json") as one:
        clients = []
        for phase in ("answering", "waiting"):
            clients.append(one.begin_post(COMPLETION, LONG))
            wait_for(lambda: [slot["phase"] for slot in one.get("/slots")[1]][-1:] == [phase])
        assert one.post(COMPLETION, LONG)[0] == 429
        assert one.post(COMPLETION, {"prompt": 5})[0] == 400
        assert one.post("/tokenize", {"content": 5})[0] == 400
        assert one.get("/nope")[0] == 404
        for client in reversed(clients):
            client.close()
            one.get("/slots")
        one.wait_until_idle()
        lines = lines_of(one, 6)
    refused = [(line["path"], line["status"], line["reason"]) for line in lines[:3]]
    assert refused == [(COMPLETION, 429, "rate_limit_exceeded"), (COMPLETION, 400, "invalid_request_error"), ("/tokenize", 400, "invalid_request_error")]
    assert lines[0]["id"].startswith("cmpl-") and lines[0]["spec"] == "full" and lines[0]["prompt_tokens"] > 0
    cancelled = {line["completion_tokens"] > 0: line for line in lines[4:]}
    assert set(cancelled) == {True, False} and all(line["finish"] == "abort" for line in lines[4:])
    assert cancelled[True]["bytes_held"] > 0 and cancelled[True]["answer_ms"] > 0 and cancelled[False]["queue_ms"] > 0


def test_documents_have_lines(model, work):
    """There is a line for each added document and for each refusal on any of the documents' routes, but none for
    reading or listing."""
    path = "/v1/documents"
    with Server(model, "--documents", f"{work}/shelf", "--api-key", "a-secret", "--log-format", "json") as one:
        by = {"X_Api_Key": "a-secret"}
        added = one.good(path, {"name": "a", "text": "words " * 20, "winnow": {"kv": "snapkv:window=8", "budget": 64}}, **by)
        one.good(path, {"name": "a", "text": "words " * 20, "winnow": {"kv": "snapkv:window=8", "budget": 64}}, **by)
        assert one.get(path, **by)[0] == one.get(f"{path}/a", **by)[0] == 200
        assert one.post(path, {"name": "b"}, **by)[0] == 400
        assert one.get(f"{path}/b", **by)[0] == one.ask("DELETE", f"{path}/b", **by)[0] == 404
        assert one.get(f"{path}/%zz", **by)[0] == 400
        assert one.get("/winnow/requests/chatcmpl-0/kept", **by)[0] == 404
        assert one.ask("DELETE", f"{path}/a", **by)[0] == 200
        read, known, *refused = lines_of(one, 7)
        rejected = [line for line in one.ask("GET", "/metrics", **by)[2].decode().splitlines() if line.startswith("winnow_rejected_total")]
    expected = {"path": path, "key": "key-1", "status": 200, "finish": "length", "reason": None, "prompt_tokens": added["tokens"], "completion_tokens": 0, "spec": "snapkv:window=8", "budget": "64"}
    assert {name: read[name] for name in expected} == expected and read["id"].startswith("doc-") and read["bytes_held"] > 0 and read["read_ms"] > 0
    assert [known[name] for name in ("path", "key", "status", "id", "prompt_tokens")] == [path, "key-1", 200, None, 0]
    assert [(line["path"], line["key"], line["status"], line["reason"]) for line in refused] == [
        (path, "key-1", 400, "invalid_request_error"),
        (f"{path}/b", "key-1", 404, "document_not_found"),
        (f"{path}/b", "key-1", 404, "document_not_found"),
        (f"{path}/%zz", "key-1", 400, "invalid_request_error"),
        ("/winnow/requests/chatcmpl-0/kept", "key-1", 404, "not_found_error"),
    ]
    assert sum(float(line.split()[-1]) for line in rejected) == len(refused)


def test_a_document_whose_client_goes_has_a_line(model, work):
    with Server(model, "--documents", f"{work}/gone", "--context", "100000", "--parallel", "1", "--log-format", "json") as one:
        with one.begin_post(COMPLETION, LONG):
            wait_for(lambda: [slot["phase"] for slot in one.get("/slots")[1]] == ["answering"])
            with one.begin_post("/v1/documents", {"name": "a", "text": "words " * 20}):
                wait_for(lambda: [slot["phase"] for slot in one.get("/slots")[1]] == ["answering", "waiting"])
            wait_for(lambda: len(one.get("/slots")[1]) == 1)
            (line,) = lines_of(one, 1)
    assert (line["path"], line["status"], line["finish"]) == ("/v1/documents", 200, "abort") and line["prompt_tokens"] > 0


def test_without_a_store_the_refusal_has_a_line(model):
    with Server(model, "--log-format", "json") as one:
        assert one.get("/v1/documents")[0] == one.post("/v1/documents", {})[0] == one.get("/v1/sessions")[0] == 501
        assert [(line["path"], line["reason"]) for line in lines_of(one, 3)] == [(path, "not_implemented_error") for path in ("/v1/documents", "/v1/documents", "/v1/sessions")]


def test_text_is_the_default(model):
    with Server(model) as one:
        reply = one.good("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2, "ignore_eos": True})
        assert one.post(COMPLETION, {"prompt": "x" * 1_000_000})[0] == 400
        wait_for(lambda: one.said().count("\n") == 3)
        _, answered, refused = one.said().splitlines()
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d"
    usage = reply["usage"]
    assert re.fullmatch(
        rf"{time} /v1/chat/completions {reply['id']} key=- status=200 finish=length prompt={usage['prompt_tokens']} cached=0 generated=2 "
        rf"spec=full budget=- held={reply['winnow']['bytes_held']} queue_ms=[\d.]+ read_ms=[\d.]+ answer_ms=[\d.]+",
        answered,
    ), answered
    assert re.fullmatch(rf"{time} /v1/completions - key=- status=400 reason=context_length_exceeded", refused), refused


def test_requests_that_the_servers_end_ends(model):
    with Server(model, "--context", "100000", "--drain-timeout", "0", "--log-format", "json") as one:
        client = one.begin_post(COMPLETION, LONG)
        wait_for(lambda: [slot["phase"] for slot in one.get("/slots")[1]] == ["answering"])
        assert one.end()[0] == 0
        client.close()
        (line,) = lines_of(one, 1)
    assert (line["status"], line["finish"], line["reason"]) == (503, "error", "unavailable_error") and "shutting down" in line["message"]
    assert line["completion_tokens"] > 0


def test_nothing_is_logged_when_quiet(model):
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
        port = free.getsockname()[1]
    with subprocess.Popen([*serve(model, port), "--quiet"], stderr=subprocess.PIPE, text=True) as process:
        one = Client("127.0.0.1", port)

        def is_there():
            with contextlib.suppress(OSError):
                return one.get("/health")[0] == 200

        wait_for(is_there)
        assert one.post(COMPLETION, {"prompt": "x", "max_tokens": 1})[0] == 200
        assert one.post(COMPLETION, {"prompt": 5, "unknown": 1})[0] == 400
        process.terminate()
        assert process.communicate(timeout=PATIENCE) == (None, "") and process.returncode == 0


def test_a_reader_of_stderr_that_does_not_read_holds_nobody_up(model):
    """The server logs more lines than the pipe holds."""
    with subprocess.Popen(serve(model, 0), stderr=subprocess.PIPE, text=True) as process:
        found = re.match(r"listening on http://([^,]*):(\d+), ", process.stderr.readline())
        one = Client(found[1], int(found[2]))
        for _ in range(1500):
            status, reply = one.post("/tokenize", {"content": 5})
            assert status == 400 and sentence(reply, "content")
        assert one.get("/health")[0] == 200
        process.terminate()
        _, rest = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0 and rest.count("/tokenize") == 1500
