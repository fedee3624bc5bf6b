# SPDX-License-Identifier: Apache-2.0
"""Requests of clients that try to stop a server, to exhaust its memory, or to mislead a proxy in front of it. Each is a
function of a server and random numbers, and checks the server's reply."""

import contextlib
import json

COMPLETION = "/v1/completions"
HIDDEN = b"GET /slots HTTP/1.1\r\nHost: localhost\r\n\r\n"
MISLEADING = [
    (b"Host: localhost\r\nTransfer-Encoding: gzip\r\n", 400),
    (b"Host: localhost\r\nTransfer-Encoding: chunked, gzip\r\n", 400),
    (b"Host: localhost\r\nTransfer-Encoding: gzip, chunked\r\n", 501),
    (b"Host: localhost\r\nTransfer-Encoding: chunked\r\nContent-Length: 4\r\n", 400),
    (b"Host: localhost\r\nContent-Length: 4\r\nContent-Length: 4\r\n", 400),
    (b"Host: localhost\r\nContent-Length: +4\r\n", 400),
    (b"Host: localhost\r\nX: y\r\n Transfer-Encoding: chunked\r\n", 400),
    (b"Host: localhost\r\nContent-Length : 4\r\n", 400),
    (b"Host: localhost\r\nHost: localhost\r\n", 400),
    (b"", 400),
]


def statuses(server, data):
    """The statuses of all replies to some bytes, until the server closes."""
    with contextlib.closing(server.connect()) as client:
        with contextlib.suppress(OSError):  # the server may close before everything is sent
            client.sendall(data)
        replies = b""
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(65536):
                replies += part
    return [int(line.split()[0]) for line in replies.split(b"HTTP/1.1 ")[1:]]


def mislead(server, chance):
    headers, status = chance.choice(MISLEADING)
    found = statuses(server, b"POST /tokenize HTTP/1.1\r\n" + headers + b"\r\n" + HIDDEN)
    assert found in ([status], []), (headers, found)


def send_between_chunks(server, chance):
    path = chance.choice([b"GET /health", b"POST /v1/completions"])
    line = chance.choice([b"5;", b"0\r\nX: ", b"5;a\r\n12345\r\n" * 2000])
    found = statuses(server, path + b" HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + line + b"x" * chance.randint(100_000, 5_000_000))
    assert found in ([200], [400], [431], []), found


def send_a_body_that_nobody_takes(server, chance):
    size = chance.randint(1, 900_000)
    found = statuses(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % size + b"x" * chance.randint(0, size))
    assert found in ([200], []), found


def call_by_another_name(server, chance):
    host = chance.choice(["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80"])
    status, headers, body = server.ask("POST", COMPLETION, b'{"prompt": "x"}', Host=host, Origin=f"http://{host}")
    assert status == 403 and "--allowed-host" in json.loads(body)["error"]["message"] and "Access-Control-Allow-Origin" not in headers


def send_many_members(server, chance):
    members = ",".join(f'"m{i}": {i}' for i in range(chance.randint(5_001, 30_000)))
    field = chance.choice(["tools", "response_format"])
    twice = chance.choice([1, 2])
    status, reply = server.post("/v1/chat/completions", '{"messages": [{"role": "user", "content": "x"}], ' + ",".join(f'"{field}": {{{members}}}' for _ in range(twice)) + "}")
    assert status == 400 and (twice == 1 or f"has {field} twice" in reply["error"]["message"]), reply


def send_control_tokens(server, chance):
    count = chance.randint(1, 40_000)
    status, reply = server.post("/tokenize", {"content": "</s>" * count})
    assert status == 200 and reply["count"] == count, reply


ALL = [mislead, send_between_chunks, send_a_body_that_nobody_takes, call_by_another_name, send_many_members, send_control_tokens]
