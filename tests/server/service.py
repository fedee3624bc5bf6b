# SPDX-License-Identifier: Apache-2.0
"""A running `winnow serve`, and ways to ask it."""

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time

from program import PATIENCE, WINNOW


class Server:
    def __init__(self, model, *options):
        command = [WINNOW, "serve", "-m", model, "--port", "0", "--threads", "1", *options]
        environment = {name: value for name, value in os.environ.items() if name not in ("WINNOW_MODEL", "WINNOW_API_KEY")}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
        self.said = []
        for line in self.process.stderr:
            self.said.append(line)
            if found := re.match(r"listening on http://([^,]*):(\d+), try: curl ", line):
                self.host, self.port = found[1], int(found[2])
                return
        raise AssertionError(self.said)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def end(self, number=signal.SIGTERM):
        """Its exit code, and what it has said on stderr."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, "".join(self.said) + errors

    def connect(self):
        return socket.create_connection((self.host, self.port), timeout=PATIENCE)

    def ask(self, method, path, body=None, **headers):
        """Status, headers and bytes of a reply."""
        with contextlib.closing(http.client.HTTPConnection(self.host, self.port, timeout=PATIENCE)) as connection:
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
        """The answer to a request that must succeed."""
        status, reply = self.post(path, body, **headers)
        assert status == 200, reply
        return reply

    def stream(self, path, body):
        """The events of a stream: JSON, and the last word."""
        status, headers, text = self.ask("POST", path, json.dumps({**body, "stream": True}))
        assert status == 200 and headers["Content-Type"] == "text/event-stream", text
        events = [event for event in text.decode().split("\n\n") if event and not event.startswith(":")]
        assert all(event.startswith("data: ") for event in events), events
        assert events[-1] == "data: [DONE]", events
        return [json.loads(event.removeprefix("data: ")) for event in events[:-1]]

    def wait_until_idle(self):
        wait_for(lambda: self.get("/slots") == (200, []))


def wait_for(condition):
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def sentence(reply, *parts):
    """The error of a reply: one sentence with what matters in it."""
    error = reply["error"]
    assert error.keys() == {"message", "type", "param", "code"}, error
    assert error["message"] and "\n" not in error["message"]
    for part in parts:
        assert part in error["message"], (part, error)
    return error


def read_head(stream):
    """Status line and headers from a socket's file."""
    status = stream.readline().decode()
    headers = http.client.parse_headers(stream)
    return int(status.split()[1]), headers
