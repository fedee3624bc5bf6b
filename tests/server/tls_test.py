# SPDX-License-Identifier: Apache-2.0
"""TLS with Python's client and a certificate that the test makes."""

import contextlib
import http.client
import json
import re
import shutil
import socket
import ssl
import subprocess
import time

import pytest
from program import PATIENCE, WINNOW, check_refusal
from service import Server, post_bytes, read_head, wait_for

COMPLETION = "/v1/completions"
SHORT = {"prompt": "hello", "max_tokens": 2, "ignore_eos": True}
LONG = {"prompt": "hello", "max_tokens": 90_000, "ignore_eos": True, "stream": True}

pytestmark = pytest.mark.skipif(not shutil.which("openssl"), reason="openssl is not installed")


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, timeout=PATIENCE)


@pytest.fixture(scope="module")
def files(work):
    """A certificate and its key, and files that are wrong in different ways."""
    at = {name: f"{work}/{name}.pem" for name in ("cert", "key", "other", "locked", "words", "absent")}
    openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", at["key"], "-out", at["cert"])  # fmt: skip
    openssl("genrsa", "-out", at["other"], "2048")
    openssl("rsa", "-in", at["key"], "-aes128", "-passout", "pass:secret", "-out", at["locked"])
    with open(at["words"], "w") as file:
        file.write("no certificate\n")
    return at


@pytest.fixture(scope="module")
def server(model, files):
    with Server(model, "--context", "100000", "--tls-cert", files["cert"], "--tls-key", files["key"]) as one:
        one.tls = ssl.create_default_context(cafile=files["cert"])
        yield one
        assert one.get("/health") == (200, {"status": "ok"})
        one.wait_until_idle()
        assert one.end()[0] == 0


def plain(server):
    return socket.create_connection((server.host, server.port), timeout=PATIENCE)


def test_it_says_where(server):
    assert f"\nlistening on https://127.0.0.1:{server.port}, try: curl https://127.0.0.1:{server.port}/v1/" in f"\n{server.said()}"


def test_answers_are_those_of_plain_http(server, model):
    with Server(model) as one:
        alone = one.good(COMPLETION, {**SHORT, "max_tokens": 20})["choices"]
    assert server.good(COMPLETION, {**SHORT, "max_tokens": 20})["choices"] == alone
    text = "".join(event["choices"][0]["text"] for event in server.stream(COMPLETION, {**SHORT, "max_tokens": 20}))
    assert text == alone[0]["text"]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_connection_is_used_again(server, files, version):
    context = ssl.create_default_context(cafile=files["cert"])
    context.minimum_version = context.maximum_version = version
    with contextlib.closing(http.client.HTTPSConnection(server.host, server.port, timeout=PATIENCE, context=context)) as connection:
        for _ in range(5):
            connection.request("POST", COMPLETION, json.dumps(SHORT))
            assert json.loads(connection.getresponse().read())["usage"]["completion_tokens"] == 2
            connection.request("GET", "/nope")
            assert connection.getresponse().read()


def test_long_bodies_and_answers(server):
    tokens = [5] * 90_000
    assert server.good("/detokenize", {"tokens": tokens})["content"]
    status, reply = server.post(COMPLETION, {"prompt": "x" * 4_000_000})
    assert status == 400 and reply["error"]["code"] == "context_length_exceeded"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_versions_and_strangers_are_refused(server):
    with pytest.raises(ssl.SSLError), plain(server) as client:
        ssl.create_default_context().wrap_socket(client, server_hostname="127.0.0.1")
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.set_ciphers("DEFAULT:@SECLEVEL=0")
    old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    with pytest.raises((ssl.SSLError, ConnectionError)), plain(server) as client:
        old.wrap_socket(client)


def test_plain_http_is_told_to_use_tls(server):
    with plain(server) as client, client.makefile("rb") as stream:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
        status, headers = read_head(stream)
        assert status == 400 and headers["Connection"] == "close"
        assert "use https" in json.loads(stream.read(int(headers["Content-Length"])))["error"]["message"]
        assert stream.read() == b""


@pytest.mark.parametrize("data", [b"", b"\0" * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x11" * 600, b"hello there\r\n\r\n"])
def test_what_is_no_tls_is_closed(server, data):
    with plain(server) as client:
        with contextlib.suppress(OSError):
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            while client.recv(1000):
                pass
    assert server.get("/health")[0] == 200


def test_clients_that_shake_no_hands_are_closed(server):
    """The server closes after 10 s, as for headers, and serves others meanwhile."""
    begin = time.monotonic()
    silent = [plain(server) for _ in range(50)]
    silent[0].sendall(b"\x16\x03\x01")
    assert server.good(COMPLETION, SHORT)
    for client in silent:
        with contextlib.suppress(ConnectionResetError):
            while client.recv(1000):
                pass
        client.close()
    assert 9 <= time.monotonic() - begin


def test_a_client_that_goes_cancels_its_request(server):
    for goes in (ssl.SSLSocket.close, lambda client: client.shutdown(socket.SHUT_RDWR)):
        client = server.tls.wrap_socket(plain(server), server_hostname="127.0.0.1")
        client.sendall(post_bytes(COMPLETION, LONG))
        assert client.recv(12) == b"HTTP/1.1 200"
        wait_for(lambda: server.get("/slots")[1] != [])
        goes(client)
        server.wait_until_idle()
        client.close()


def test_an_end_is_told(server):
    """The server announces the end of the connection, so that clients can detect a cut one."""
    client = server.tls.wrap_socket(plain(server), server_hostname="127.0.0.1", suppress_ragged_eofs=False)
    client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
    received = b""
    while more := client.recv(1000):
        received += more
    assert received.startswith(b"HTTP/1.0 200") and received.endswith(b'{"status":"ok"}')
    client.close()


def test_a_connection_too_many_is_told_so(model, files):
    with Server(model, "--max-connections", "2", "--tls-cert", files["cert"], "--tls-key", files["key"]) as one:
        one.tls = ssl.create_default_context(cafile=files["cert"])
        held = [plain(one) for _ in range(2)]
        wait_for(lambda: one.ask("GET", "/health")[0] == 503)
        for client in held:
            client.close()
        wait_for(lambda: one.ask("GET", "/health")[0] == 200)


@pytest.mark.parametrize(
    "cert, key, code, parts",
    [
        ("cert", None, 2, ["--tls-cert", "--tls-key"]),
        (None, "key", 2, ["--tls-cert", "--tls-key"]),
        ("absent", "key", 1, ["absent.pem"]),
        ("cert", "absent", 1, ["absent.pem"]),
        ("words", "key", 1, ["words.pem", "not a certificate"]),
        ("key", "key", 1, ["key.pem", "not a certificate"]),
        ("cert", "words", 1, ["words.pem", "not the key of"]),
        ("cert", "other", 1, ["other.pem", "not the key of"]),
        ("cert", "locked", 1, ["locked.pem", "without a password"]),
    ],
)
def test_files_that_cannot_be(model, files, cert, key, code, parts):
    """The port is taken, but the error is about the files, which are loaded first."""
    with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as taken:
        command = [WINNOW, "serve", "-m", model, "--port", str(taken.getsockname()[1])]
        command += ["--tls-cert", files[cert]] if cert else []
        command += ["--tls-key", files[key]] if key else []
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=PATIENCE)
    check_refusal(result, code, *parts)
    assert not re.search("taken|listening", result.stderr)
