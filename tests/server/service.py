# SPDX-License-Identifier: Apache-2.0
"""A running `winnow serve`, and a client for it."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile

from program import PATIENCE, WINNOW, wait_for


def tokens_of_message(message):
    """Tokens of the prompt of one of Anthropic's messages: `input_tokens` are without those that were found."""
    usage = message["usage"]
    assert usage["cache_creation_input_tokens"] == 0
    return usage["input_tokens"] + usage["cache_read_input_tokens"]


class Client:
    """A client of the server at an address."""

    def __init__(self, host, port):
        self.host, self.port = host, port
        self.tls = None  # TLS context, if any

    def opened(self):
        if self.tls:
            return http.client.HTTPSConnection(self.host, self.port, timeout=PATIENCE, context=self.tls)
        return http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def ask(self, method, path, body=None, **headers):
        """Status, headers and bytes of a reply."""
        with contextlib.closing(self.opened()) as connection:
            connection.request(method, path, body, {name.replace("_", "-"): value for name, value in headers.items()})
            reply = connection.getresponse()
            return reply.status, reply.headers, reply.read()

    def get(self, path, **headers):
        status, _, body = self.ask("GET", path, **headers)
        return status, json.loads(body)

    def post(self, path, body, **headers):
        data = body if isinstance(body, (bytes, str)) else json.dumps(body)
        status, _, reply = self.ask("POST", path, data, **headers)
        return status, json.loads(reply)

    def good(self, path, body, **headers):
        """The reply to a request that must succeed."""
        status, reply = self.post(path, body, **headers)
        assert status == 200, reply
        return reply

    def stream(self, path, body):
        """The events of a stream as JSON, and its last line."""
        status, headers, text = self.ask("POST", path, json.dumps({**body, "stream": True}))
        assert status == 200 and headers["Content-Type"] == "text/event-stream", text
        events = [event for event in text.decode().split("\n\n") if event and not event.startswith(":")]
        assert all(event.startswith("data: ") for event in events), events
        assert events[-1] == "data: [DONE]", events
        return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]

    def begin_post(self, path, body):
        """A connection on which a request was sent."""
        client = self.connect()
        client.sendall(post_bytes(path, body))
        return client

    def wait_until_idle(self):
        wait_for(lambda: self.get("/slots") == (200, []))


GREEDY = ("--temp", "0")


class Server(Client):
    """A separate server, on any free port or on a given one. Its answers are greedy unless requests or options say
    otherwise."""

    def __init__(self, model, *options, port=0, sampling=GREEDY, source="-m"):
        chosen = () if "--temp" in options else sampling
        command = [WINNOW, "serve", source, model, "--port", str(port), "--threads", "1", *chosen, *options]
        environment = {name: value for name, value in os.environ.items() if name not in ("WINNOW_MODEL", "WINNOW_API_KEY")}
        self.errors = tempfile.NamedTemporaryFile("w")
        self.process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=self.errors, env=environment)
        listening = re.compile(r"listening on https?://([^,]*):(\d+), try: curl .*\n")
        wait_for(lambda: listening.search(self.said()) or self.process.poll() is not None)
        found = listening.search(self.said())
        assert found, self.said()
        super().__init__(found[1], int(found[2]))

    def said(self):
        """Everything that it wrote to stderr."""
        with open(self.errors.name) as file:
            return file.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.errors.close()

    def peak_bytes(self):
        """Its peak resident memory."""
        with open(f"/proc/{self.process.pid}/status") as file:
            return 1024 * int(re.search(r"^VmHWM:\s*(\d+) kB$", file.read(), re.MULTILINE)[1])

    def end(self, number=signal.SIGTERM):
        """Its exit code, and everything that it wrote to stderr."""
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE), self.said()


def sentence(reply, *parts):
    """The error of a reply; checks that its message is one sentence with these parts."""
    error = reply["error"]
    assert error.keys() == {"message", "type", "param", "code"}, error
    assert error["message"] and "\n" not in error["message"]
    for part in parts:
        assert part in error["message"], (part, error)
    return error


def post_bytes(path, body, **headers):
    """The bytes of a request; the body is encoded as JSON unless it is bytes."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = [f"POST {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(data)}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    return "\r\n".join(lines).encode() + data


def read_head(stream):
    """Reads the status and the headers from a socket's file."""
    status = stream.readline().decode()
    headers = http.client.parse_headers(stream)
    return int(status.split()[1]), headers
