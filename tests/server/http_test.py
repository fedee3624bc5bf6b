# SPDX-License-Identifier: Apache-2.0
"""Clients that are slow, wrong, hostile or gone: the server answers valid requests, and serves other clients."""

import contextlib
import http.client
import json
import socket
import threading
import time

import pytest
from program import PATIENCE
from service import Server, post_bytes, read_head, sentence, wait_for

COMPLETION = "/v1/completions"
GOOD = json.dumps({"prompt": "hello", "max_tokens": 2, "ignore_eos": True}).encode()
LONG = json.dumps({"prompt": "hello", "max_tokens": 90_000, "ignore_eos": True, "stream": True}).encode()


def reply_to(server, data, half_close=False):
    """Status, headers and body of the first reply to some bytes; None when the connection ends without one."""
    with contextlib.closing(server.connect()) as client:
        with contextlib.suppress(OSError):
            client.sendall(data)
            if half_close:
                client.shutdown(socket.SHUT_WR)
        with client.makefile("rb") as stream:
            try:
                status, headers = read_head(stream)
            except (IndexError, OSError):
                return None
            return status, headers, stream.read(int(headers.get("Content-Length", 0)))


def test_unknown_routes_and_methods(server):
    for path in ("/nope", "/v1", "/v1/chat/completions/", "//", "/v1/completions%20", "/" + "x" * 5000):
        status, reply = server.get(path)
        assert status == 404 and sentence(reply, "there is no")["type"] == "not_found_error", path
    for method, path, allowed in (("GET", COMPLETION, "POST"), ("DELETE", "/health", "GET"), ("BREW", "/health", "GET"), ("PUT", "/tokenize", "POST")):
        status, headers, reply = server.ask(method, path)
        assert status == 405 and headers["Allow"] == allowed, (method, path)
        sentence(json.loads(reply), method, allowed)


def test_a_target_may_have_a_query(server):
    assert server.get("/health?x=1")[0] == 200


def test_head_is_get_without_a_body(server):
    status, headers, body = server.ask("HEAD", "/health")
    assert status == 200 and body == b"" and int(headers["Content-Length"]) > 0


NO_HTTP = {
    "words": b"hello there\r\n\r\n",
    "zeros": b"\0" * 100,
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x11" * 50 + b"\r\n\r\n",
    "another version": b"GET /health HTTP/3.9\r\n\r\n",
    "a header without a colon": b"GET /health HTTP/1.1\r\nhost\r\n\r\n",
    "a negative length": b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    "two lengths": b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nxxxxx",
    "a length that is no number": b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5x\r\n\r\nxxxxx",
    "a chunk that is no number": b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nxx\r\n",
}


@pytest.mark.parametrize("name", NO_HTTP)
def test_what_is_no_http(server, name):
    status, headers, body = reply_to(server, NO_HTTP[name])
    assert status == 400 and headers["Connection"] == "close"
    sentence(json.loads(body), "not an HTTP request")


@pytest.mark.parametrize("header, limit", [(b"X: " + b"x" * 20_000, "16384 bytes"), (b"\r\n".join(b"X%d: y" % i for i in range(3000)), "100 fields"), (b"x" * 20_000, "16384 bytes")])
def test_a_header_that_is_too_long(server, header, limit):
    reply = reply_to(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
    assert reply is not None and reply[0] == 431 and limit in sentence(json.loads(reply[2]))["message"]


def test_a_body_that_is_too_long(model):
    with Server(model, "--max-body", "1000") as one:
        assert one.post(COMPLETION, GOOD)[0] == 200
        for data in (post_bytes(COMPLETION, b"x" * 1001), post_bytes(COMPLETION, b"x" * 3_000_000), b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n7d0\r\n" + b"x" * 2000):
            status, _, body = reply_to(one, data)
            assert status == 413 and "1000" in sentence(json.loads(body))["message"]
        assert one.get("/health")[0] == 200


@pytest.mark.parametrize("head", [
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5;",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: ",
    b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n",
    b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n",
])  # fmt: skip
def test_who_has_no_key_takes_no_memory(model, head):
    """Ten clients send as much as they can, up to 30 MB each; the server's memory hardly grows."""
    with Server(model, "--api-key", "secret") as one:
        assert one.get("/health")[0] == 200
        before = one.peak_bytes()
        clients = [one.connect() for _ in range(10)]
        for client in clients:
            with contextlib.suppress(OSError):  # the server closes before everything is sent
                client.sendall(head)
                for _ in range(30):
                    client.sendall(b"x" * 1_000_000)
        assert one.peak_bytes() - before < 4_000_000
        for client in clients:
            client.close()
        assert one.get("/health")[0] == 200


def test_a_body_that_a_route_does_not_take(server):
    """The route answers, and the body's bytes are not taken for a request."""
    for method in ("GET", "DELETE", "HEAD"):
        reply = reply_to(server, method.encode() + b" /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 51\r\n\r\nGET /slots HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert reply is not None and reply[0] == (405 if method == "DELETE" else 200) and reply[1]["Connection"] == "close"


def test_a_chunked_body(server):
    chunks = b"".join(b"%x\r\n%c\r\n" % (1, byte) for byte in GOOD) + b"0\r\n\r\n"
    status, _, body = reply_to(server, b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks)
    assert status == 200 and json.loads(body)["usage"]["completion_tokens"] == 2


def test_a_client_that_asks_before_it_sends(server):
    with contextlib.closing(server.connect()) as client, client.makefile("rb") as stream:
        client.sendall(post_bytes(COMPLETION, b"", Expect="100-continue").replace(b"Content-Length: 0", b"Content-Length: %d" % len(GOOD)))
        assert stream.readline() == b"HTTP/1.1 100 Continue\r\n" and stream.readline() == b"\r\n"
        client.sendall(GOOD)
        assert read_head(stream)[0] == 200


def test_a_connection_is_used_again(server):
    with contextlib.closing(http.client.HTTPConnection(server.host, server.port, timeout=PATIENCE)) as connection:
        for _ in range(5):
            connection.request("POST", COMPLETION, GOOD)
            assert json.loads(connection.getresponse().read())["usage"]["completion_tokens"] == 2
            connection.request("GET", "/v1/models")
            assert connection.getresponse().read()
            connection.request("POST", COMPLETION, b"{}")
            assert connection.getresponse().read()


def test_requests_that_are_sent_ahead_are_answered_in_order(server):
    bodies = [json.dumps({"prompt": "hello", "max_tokens": n, "ignore_eos": True}).encode() for n in (3, 1, 2)]
    with contextlib.closing(server.connect()) as client, client.makefile("rb") as stream:
        client.sendall(b"".join(post_bytes(COMPLETION, body) for body in bodies))
        for n in (3, 1, 2):
            _, headers = read_head(stream)
            assert json.loads(stream.read(int(headers["Content-Length"])))["usage"]["completion_tokens"] == n


def test_an_old_client_gets_a_stream_without_chunks(server):
    body = json.dumps({"prompt": "hello", "max_tokens": 3, "ignore_eos": True, "stream": True}).encode()
    with contextlib.closing(server.connect()) as client, client.makefile("rb") as stream:
        client.sendall(post_bytes(COMPLETION, body).replace(b"HTTP/1.1", b"HTTP/1.0"))
        status, headers = read_head(stream)
        assert status == 200 and "Transfer-Encoding" not in headers
        text = stream.read()
    assert text.startswith(b"data: {") and text.endswith(b"data: [DONE]\n\n")


def test_half_closed_and_cut_requests_end_nothing(server):
    whole = post_bytes(COMPLETION, GOOD)
    for end in (0, 1, 10, len(whole) - len(GOOD), len(whole) - 1):
        assert reply_to(server, whole[:end], half_close=True) is None
    reply_to(server, whole, half_close=True)  # an answer or none: the server may drop a client that has closed its side
    assert server.post(COMPLETION, GOOD)[0] == 200


def test_slow_headers_are_cut_off_and_idle_clients_are_not_in_the_way(server):
    """The server waits 10 s for headers and serves others meanwhile."""
    begin = time.monotonic()
    slow = [server.connect() for _ in range(100)]
    for client in slow:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: ")
    assert server.post(COMPLETION, GOOD)[0] == 200
    while time.monotonic() - begin < 5:
        for client in slow:
            client.sendall(b"x")
        time.sleep(1)
    for client in slow:
        with contextlib.suppress(ConnectionResetError):  # the server may close before it has read everything
            assert client.recv(1000) == b"", "it is closed"
        client.close()
    assert time.monotonic() - begin >= 9


def test_a_connection_too_many_is_told_so(model):
    with Server(model, "--max-connections", "3") as one:
        held = [one.connect() for _ in range(3)]
        wait_for(lambda: (reply_to(one, b"") or [0])[0] == 503)
        for client in held:
            client.close()
        wait_for(lambda: reply_to(one, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200)


def test_a_client_that_goes_while_it_is_answered(server):
    """Its request ends, and the answers of others are the same as alone."""
    alone = server.good(COMPLETION, {"prompt": "other words", "max_tokens": 40, "ignore_eos": True})["choices"]
    clients = [server.begin_post(COMPLETION, LONG) for _ in range(6)]
    for client in clients[:3]:
        assert client.recv(100).startswith(b"HTTP/1.1 200"), "it streams"
    beside = []
    other = threading.Thread(target=lambda: beside.append(server.good(COMPLETION, {"prompt": "other words", "max_tokens": 40, "ignore_eos": True})["choices"]))
    other.start()
    for client in clients:
        client.close()
    other.join()
    assert beside == [alone]
    server.wait_until_idle()


def test_a_client_that_goes_before_it_is_answered_at_all(server):
    for body in (LONG, LONG.replace(b'"stream": true', b'"stream": false')):
        client = server.begin_post(COMPLETION, body)
        wait_for(lambda: server.get("/slots")[1] != [])
        client.close()
        server.wait_until_idle()


def test_a_client_that_does_not_read_is_given_up(server):
    """Its unread bytes are bounded: at the bound the request ends, long before the answer would."""
    with contextlib.closing(server.connect()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        body = json.dumps({"prompt": "hello", "max_tokens": 90_000, "n": 8, "ignore_eos": True, "stream": True, "logprobs": 20}).encode()
        client.sendall(post_bytes(COMPLETION, body))
        wait_for(lambda: server.get("/slots")[1] != [])
        wait_for(lambda: server.get("/slots")[1] == [])


def test_health_answers_while_the_engine_is_busy(server):
    client = server.begin_post(COMPLETION, {"prompt": "words " * 3000, "max_tokens": 1})
    for _ in range(20):
        assert server.get("/health") == (200, {"status": "ok"})
        assert server.get("/v1/health") == (200, {"status": "ok"})
    client.close()


def test_keys(model, work):
    with open(f"{work}/keys", "w") as file:
        file.write("# ours\nsecond key\n\nthird\r\n")
    with Server(model, "--api-key", "first", "--api-key-file", f"{work}/keys") as one:
        for headers in ({}, {"Authorization": "Bearer no"}, {"Authorization": "first"}, {"Authorization": "Bearer firs"}, {"Authorization": "Bearer first "[:-2]}, {"X_Api_Key": "# ours"}, {"X_Api_Key": ""}):
            for method, path in (("POST", COMPLETION), ("GET", "/slots"), ("GET", "/v1/models"), ("GET", "/metrics"), ("POST", "/tokenize")):
                status, got, body = one.ask(method, path, GOOD if method == "POST" else None, **headers)
                assert status == 401 and sentence(json.loads(body), "key")["type"] == "authentication_error", (headers, path)
                assert got["WWW-Authenticate"] == "Bearer"
        for headers in ({"Authorization": "Bearer first"}, {"Authorization": "bearer second key"}, {"X_Api_Key": "third"}):
            assert one.ask("POST", COMPLETION, GOOD, **headers)[0] == 200, headers
        assert one.get("/health")[0] == 200 and one.ask("OPTIONS", COMPLETION)[0] == 204


def test_a_name_that_is_not_the_servers(model, work):
    """A page of evil.example whose name resolves to this machine seems to come from the server itself (DNS
    rebinding)."""
    with Server(model, "--sessions", f"{work}/s", "--documents", f"{work}/d", "--allowed-host", "chat.example", "--cors-origin", "https://evil.example") as one:
        for host in ("evil.example", f"evil.example:{one.port}", "localhost.evil.example", "127.0.0.1.evil.example", ""):
            for headers in ({}, {"Origin": f"http://{host}"}, {"Origin": f"https://{host}"}):
                for method, path in (("POST", COMPLETION), ("GET", "/v1/sessions"), ("DELETE", "/v1/sessions/x"), ("POST", "/v1/documents"), ("GET", "/"), ("GET", "/health"), ("OPTIONS", COMPLETION)):
                    status, got, body = one.ask(method, path, GOOD if method == "POST" else None, Host=host, **headers)
                    assert status == 403 and "--allowed-host" in sentence(json.loads(body))["message"], (host, path)
                    assert "Access-Control-Allow-Origin" not in got
        for host in ("localhost", "LOCALHOST:1", "127.0.0.1", "127.1.2.3:80", "[::1]:8080", "192.168.7.7", "chat.example", "Chat.Example:443"):
            assert one.ask("POST", COMPLETION, GOOD, Host=host, Origin=f"http://{host}")[0] == 200, host
        assert one.ask("POST", COMPLETION, GOOD, Host="localhost", Origin="http://evil.example")[0] == 403
    with Server(model, "--allowed-host", "*", "--api-key", "k") as one:
        assert one.ask("POST", COMPLETION, GOOD, Host="evil.example", X_Api_Key="k")[0] == 200
    with Server(model, "--host", "localhost", "--api-key", "k") as one:
        assert one.ask("POST", COMPLETION, GOOD, Host="evil.example", X_Api_Key="k")[0] == 403
        assert one.ask("POST", COMPLETION, GOOD, Host="localhost", X_Api_Key="k")[0] == 200


def test_pages_of_this_machine_may_use_it_and_no_others(model):
    with Server(model, "--cors-origin", "https://chat.example") as one:
        own = f"http://{one.host}:{one.port}"
        for origin in ("http://localhost:3000", "http://localhost", "https://127.0.0.1:1", "http://[::1]:5", own, "https://chat.example"):
            status, headers, _ = one.ask("OPTIONS", COMPLETION, Origin=origin)
            assert status == 204 and headers["Access-Control-Allow-Origin"] == origin and "POST" in headers["Access-Control-Allow-Methods"]
            status, headers, _ = one.ask("POST", COMPLETION, GOOD, Origin=origin)
            assert status == 200 and headers["Access-Control-Allow-Origin"] == origin
        for origin in ("https://evil.example", "http://localhost.evil.example", "null", "https://chat.example.evil", "http://127.0.0.1.evil"):
            for method in ("OPTIONS", "POST"):
                status, headers, body = one.ask(method, COMPLETION, GOOD, Origin=origin)
                assert status == 403 and "Access-Control-Allow-Origin" not in headers and "--cors-origin" in sentence(json.loads(body))["message"]
    with Server(model, "--cors-origin", "*") as one:
        assert one.ask("POST", COMPLETION, GOOD, Origin="https://evil.example")[0] == 200


# Headers that browsers ask to send for pages with these clients.
SENT = {
    "openai": "authorization,content-type,openai-organization,openai-project,x-stainless-arch,x-stainless-lang,x-stainless-os,x-stainless-package-version,x-stainless-retry-count,x-stainless-runtime,x-stainless-runtime-version,x-stainless-timeout",
    "anthropic": "anthropic-beta,anthropic-dangerous-direct-browser-access,anthropic-version,content-type,idempotency-key,x-api-key,x-stainless-arch,x-stainless-helper-method,x-stainless-lang",
    "langchain": "authorization,content-type,http-referer,x-title,x-request-id",
    "a page of winnow": "content-type,winnow-session,x-api-key",
}


def allowed_names(headers):
    return {name.strip().lower() for name in headers["Access-Control-Allow-Headers"].split(",")}


@pytest.mark.parametrize("client", SENT)
def test_a_page_may_send_the_headers_of_its_client(server, client):
    for path in (COMPLETION, "/v1/models"):
        status, headers, _ = server.ask("OPTIONS", path, Origin="http://localhost:3000", Access_Control_Request_Method="POST", Access_Control_Request_Headers=SENT[client])
        assert status == 204 and set(SENT[client].split(",")) <= allowed_names(headers), headers
    values = {name: "x" for name in SENT[client].split(",") if name not in ("content-type", "authorization", "winnow-session")}
    status, headers, _ = server.ask("POST", COMPLETION, GOOD, Origin="http://localhost:3000", **values)
    assert status == 200 and headers["Access-Control-Expose-Headers"] == "Retry-After"


def test_a_page_that_may_not_use_it_is_told_of_no_headers(server):
    status, headers, _ = server.ask("OPTIONS", COMPLETION, Origin="https://evil.example", Access_Control_Request_Headers="x-stainless-lang")
    assert status == 403 and not [name for name in headers if name.lower().startswith("access-control")]
