# SPDX-License-Identifier: Apache-2.0
"""examples/deploy on loopback: HAProxy, two servers and Redis. Servers are killed while clients send requests."""

import contextlib
import http.client
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest
from program import PATIENCE, WINNOW
from redis_server import Redis, needs_redis
from service import Client, Server, wait_for

SOURCE = pathlib.Path(__file__).resolve().parents[2]
DEPLOY, SERVICE = SOURCE / "examples/deploy", SOURCE / "packaging/winnow.service"
CHAT, DOCUMENTS = "/v1/chat/completions", "/v1/documents"
LOST = (OSError, http.client.HTTPException)
WAYS = [{"kv": "full"}, {"kv": "snapkv:window=8", "budget": "64"}, {"kv": "ada-snapkv:window=8", "budget": "64", "protocol": "question-agnostic"}]
needs_haproxy = pytest.mark.skipif(not shutil.which("haproxy"), reason="haproxy is not installed")
needs_systemd = pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="systemd-analyze is not installed")


def free_ports(count):
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


class Balancer(Client):
    """HAProxy with the configuration of examples/deploy in front of two ports."""

    def __init__(self, *servers):
        (port,) = free_ports(1)
        super().__init__("127.0.0.1", port)
        addresses = {name: f"127.0.0.1:{p}" for name, p in zip(("WINNOW_FRONT", "WINNOW_A", "WINNOW_B"), (port, *servers))}
        self.log = tempfile.NamedTemporaryFile("w")
        self.errors = []  # that until_done() retried
        self.process = subprocess.Popen(["haproxy", "-db", "-f", str(DEPLOY / "haproxy.cfg")], env={**os.environ, **addresses}, stderr=self.log)

    def __enter__(self):
        wait_for(lambda: self.status_of("GET", "/health") == 200)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        print(pathlib.Path(self.log.name).read_text())  # pytest shows it when the test fails
        self.log.close()

    def status_of(self, method, path, body=None, **headers):
        """The status; None if the connection is lost."""
        return self.tried(method, path, body, **headers)[0]

    def tried(self, method, path, body=None, **headers):
        """Status and text; the status is None if the reply is lost or cut off."""
        try:
            status, _, text = self.ask(method, path, json.dumps(body) if body else None, **headers)
        except LOST:
            return None, ""
        is_cut = body and body.get("stream") and status == 200 and not text.endswith(b"data: [DONE]\n\n")
        return (None if is_cut else status), text.decode()

    def until_done(self, method, path, body=None, **headers):
        """The final reply to a client that retries after errors, as OpenAI's client does."""
        end = time.monotonic() + PATIENCE
        while True:
            status, text = self.tried(method, path, body, **headers)
            if status is not None and status not in (409, 429) and status < 500:
                return status, text
            self.errors.append((path, status, text))
            assert time.monotonic() < end, (status, text)
            time.sleep(0.1)


def text_of(reply):
    """The answer's text, from one reply or from a stream."""
    if not reply.startswith("data: "):
        return json.loads(reply)["choices"][0]["message"]["content"]
    events = [json.loads(line.removeprefix("data: ")) for line in reply.splitlines() if line.startswith("data: {")]
    assert not any("error" in event for event in events), events
    return "".join(event["choices"][0]["delta"].get("content") or "" for event in events if event["choices"])


def chat(question, way, **fields):
    return {"messages": [{"role": "user", "content": question}], "max_tokens": 40, "ignore_eos": True, "winnow": way, **fields}


class Load:
    """Clients in threads; each repeats one step. An error that a client finds ends the test."""

    def __init__(self):
        self.clients, self.done, self.wrong = [], [], []
        self.stopping = threading.Event()

    def add(self, step):
        self.clients.append(threading.Thread(target=self.repeat, args=(step, len(self.clients))))
        self.done.append(0)

    def repeat(self, step, number):
        try:
            while not self.stopping.is_set():
                step()
                self.done[number] += 1
        except BaseException as error:
            self.wrong.append(error)
            raise

    def goes_on(self):
        """Waits until every client has finished two more steps."""
        before = list(self.done)
        wait_for(lambda: self.wrong or all(now >= then + 2 for now, then in zip(self.done, before)))
        assert not self.wrong, self.wrong

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        self.stopping.set()
        for client in self.clients:
            client.join()


class Conversation:
    """Takes turns in a session as examples/deploy/README.md says: after an error it looks at the session before it asks
    again."""

    def __init__(self, front, name, way, stream):
        self.front, self.name, self.way, self.stream = front, name, way, stream
        self.said = []
        self.troubles = 0

    def turn(self):
        message = f"turn {len(self.said) // 2} of {self.name}"
        answer = self.answer_to(message)
        self.said += [message, answer]

    def answer_to(self, message):
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            body = chat(message, self.way, stream=self.stream, max_tokens=15)
            status, reply = self.front.tried("POST", CHAT, body, Winnow_Session=self.name)
            if status == 200 and 'data: {"error"' not in reply:
                return text_of(reply)
            self.troubles += 1
            assert status is None or status in (200, 409, 429) or status >= 500, reply
            kept = self.kept(self.front)
            assert kept[: len(self.said)] == self.said
            if len(kept) > len(self.said):
                assert len(kept) == len(self.said) + 2 and kept[-2] == message
                return kept[-1]
            time.sleep(0.1)
        raise AssertionError(f"no answer in {PATIENCE} s: {status} {reply}")

    def kept(self, server):
        ask = server.until_done if isinstance(server, Balancer) else server.tried
        status, reply = ask("GET", f"/v1/sessions/{self.name}")
        return [m["content"] for m in json.loads(reply)["messages"]] if status == 200 else []


class Plain:
    """Repeats the same requests and compares the answers with known ones."""

    def __init__(self, front, bodies, answers):
        self.front, self.bodies, self.answers = front, bodies, answers
        self.asked = 0

    def step(self):
        which = self.asked % len(self.bodies)
        self.asked += 1
        status, reply = self.front.until_done("POST", CHAT, self.bodies[which])
        assert status == 200 and text_of(reply) == self.answers[which], reply


class Librarian:
    """Adds documents, and asks questions about the last one."""

    def __init__(self, front):
        self.front = front
        self.names = []

    def step(self):
        name = f"document {len(self.names)}"
        status, reply = self.front.until_done("POST", DOCUMENTS, {"name": name, "text": f"The words of {name}. " * 4})
        assert status == 200 and json.loads(reply)["tokens"] > 0, reply
        self.names.append(name)
        status, reply = self.front.until_done("POST", CHAT, chat("Which words?", {"documents": [name]}, max_tokens=5))
        assert status == 200, reply


@pytest.fixture(scope="module")
def known(model):
    """Plain requests, and the answers of one server."""
    bodies = [chat(f"Question {i}? " * 5, way, stream=stream) for i, way in enumerate(WAYS) for stream in (False, True)]
    with Server(model, "--context", "100000") as server:
        return bodies, [text_of(server.ask("POST", CHAT, json.dumps(body))[2].decode()) for body in bodies]


@needs_redis
@needs_haproxy
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=lambda how: how.name)
def test_nothing_is_lost_when_a_server_goes(model, known, how):
    ports = free_ports(2)
    with contextlib.ExitStack() as stack:
        redis = stack.enter_context(Redis("--appendonly", "yes"))
        options = ["--sessions", redis.url(1), "--documents", redis.url(0), "--context", "100000"]
        servers = [stack.enter_context(Server(model, *options, port=port)) for port in ports]
        front = stack.enter_context(Balancer(*ports))
        conversations = [Conversation(front, f"tale-{i}", WAYS[i % len(WAYS)], i % 2 == 1) for i in range(6)]
        librarian = Librarian(front)
        load = Load()
        for step in (*(c.turn for c in conversations), Plain(front, *known).step, Plain(front, *known).step, librarian.step):
            load.add(step)
        with load:
            for which in (0, 1, 0):
                load.goes_on()
                wait_for(lambda: servers[which].get("/slots")[1])
                servers[which].process.send_signal(how)
                servers[which].process.wait(timeout=PATIENCE)
                load.goes_on()
                servers[which] = stack.enter_context(Server(model, *options, port=ports[which]))
                # HAProxy sends it requests again after the restart.
                wait_for(lambda: load.wrong or " status=" in servers[which].said())
        assert how == signal.SIGKILL or not front.errors, "a server that drains is missed by nobody"
        print("turns:", [len(c.said) // 2 for c in conversations], "errors seen:", [c.troubles for c in conversations])
        for server in servers:
            for conversation in conversations:
                assert [m["content"] for m in server.get(f"/v1/sessions/{conversation.name}")[1]["messages"]] == conversation.said
            assert {d["name"] for d in server.get(DOCUMENTS)[1]["data"]} == set(librarian.names)
            server.wait_until_idle()


@needs_haproxy
def test_a_client_that_goes_cancels_its_request(model):
    ports = free_ports(2)
    with Server(model, "--context", "100000", port=ports[0]) as a, Server(model, "--context", "100000", port=ports[1]) as b, Balancer(*ports) as front:
        for stream in (False, True):
            with front.begin_post(CHAT, chat("hello", {}, max_tokens=90_000, stream=stream)):
                wait_for(lambda: a.get("/slots")[1] or b.get("/slots")[1])
            a.wait_until_idle()
            b.wait_until_idle()


class Dying:
    """A server that answers /health and closes the connection of any other request without an answer."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got = 0
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                with connection:
                    request = connection.recv(1 << 16)
                    if b" /health " in request:
                        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                    elif request:
                        self.got += 1


@needs_haproxy
def test_a_turn_that_a_server_has_got_is_not_sent_again():
    a, b = Dying(), Dying()
    with contextlib.closing(a.listener), contextlib.closing(b.listener), Balancer(a.port, b.port) as front:
        assert front.status_of("POST", CHAT, chat("hello", {}), Winnow_Session="tale") == 502
        assert a.got + b.got == 1
        assert front.status_of("POST", CHAT, chat("hello", {})) == 502
        assert a.got + b.got > 2, "any other request is"


def unit():
    """The service file's values by key; the last one if a key repeats."""
    lines = SERVICE.read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


@needs_systemd
def test_systemd_takes_the_service(tmp_path):
    path = tmp_path / "winnow.service"
    path.write_text(SERVICE.read_text().replace("ExecStart=winnow", f"ExecStart={WINNOW}"))
    result = subprocess.run(["systemd-analyze", "verify", str(path)], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0 and "winnow.service" not in result.stderr, result.stderr


def test_the_command_of_the_service_starts_a_server(model, tmp_path):
    (port,) = free_ports(1)
    name, _, value = shlex.split(unit()["Environment"])[0].partition("=")
    assert name == "WINNOW_OPTIONS"
    command = unit()["ExecStart"].replace("$WINNOW_OPTIONS", value.replace("%S", str(tmp_path)))
    command = re.sub("^winnow serve", f"{WINNOW} serve --port {port}", command)
    assert int(unit()["TimeoutStopSec"]) > int(re.search(r"--drain-timeout (\d+)", command)[1])
    (tmp_path / "winnow").mkdir()
    process = subprocess.Popen(shlex.split(command), env={**os.environ, "WINNOW_MODEL": model, "WINNOW_API_KEY": "secret"}, stderr=subprocess.DEVNULL)
    try:
        client = Client("127.0.0.1", port)

        def is_up():
            with contextlib.suppress(OSError):
                return client.get("/health")[0] == 200

        wait_for(lambda: process.poll() is not None or is_up())
        assert client.get("/v1/sessions")[0] == 401
        assert client.get("/v1/sessions", X_Api_Key="secret")[0] == 200 and client.get(DOCUMENTS, X_Api_Key="secret")[0] == 200
        process.terminate()
        assert process.wait(timeout=PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
