# SPDX-License-Identifier: Apache-2.0
"""Random load, faults and cancellations against `winnow serve` for some minutes; afterwards it must be as before.

WINNOW=PROGRAM MAKE_TINY_GGUF=PROGRAM random_load.py MINUTES [SEED]

Clients request answers, which must equal those that they get alone. They read slowly, leave in the queue or while their
prompts are read or answered, close one side of their connections, send headers byte by byte, send bodies that are too
large, no JSON or no UTF-8, and attack (hostile_requests.py, greedy_requests.py). In the end no request may be left,
/metrics must agree, the server must exit with code 0, and its memory must not have grown from the second third of the
time to the last. Builds with sanitizers work too: a finding gives another exit code.
"""

import collections
import contextlib
import http.client
import json
import os
import pathlib
import random
import re
import socket
import statistics
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

import greedy_requests  # noqa: E402
import hostile_requests  # noqa: E402
from program import PATIENCE, make_tiny_gguf  # noqa: E402
from service import Server, post_bytes  # noqa: E402

CLIENTS = 24
CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
KEEPINGS = [{}, {"kv": "snapkv:window=8", "budget": 40}, {"kv": "streaming-llm", "budget": "30%"}, {"kv": "h2o", "budget": 50, "kv_type": "q8_0"}]
AGNOSTIC = {"kv": "snapkv:window=8", "budget": 40, "protocol": "question-agnostic"}


def bodies():
    """Requests with short answers, each as path and fields."""
    for i, keeping in enumerate(KEEPINGS):
        yield COMPLETION, {"prompt": f"{i} words " * 40, "max_tokens": 20, "ignore_eos": True, "logprobs": 2, "winnow": keeping}
    for question in ("who?", "why?"):
        parts = [{"type": "text", "text": "a text to keep " * 40}, {"type": "text", "text": question}]
        yield CHAT, {"messages": [{"role": "user", "content": parts}], "max_tokens": 20, "ignore_eos": True, "temperature": 1, "seed": 5, "winnow": AGNOSTIC}


class Load:
    def __init__(self, server, seed):
        self.server, self.seed = server, seed
        self.alone = [(path, body, server.good(path, body)["choices"]) for path, body in bodies()]
        self.done = collections.Counter()
        self.wrong = []
        self.end = threading.Event()

    # ---- steps of a client, chosen by its own random numbers --------------------------------------------------------

    def answer(self, chance):
        path, body, alone = chance.choice(self.alone)
        status, reply = self.server.post(path, body)
        assert status in (200, 429), reply
        assert status == 429 or reply["choices"] == alone, (reply["choices"], alone)

    def stream(self, chance):
        path, body, alone = chance.choice(self.alone)
        status, _, text = self.server.ask("POST", path, json.dumps({**body, "stream": True}))
        assert status == 429 or text.endswith(b"data: [DONE]\n\n"), text

    def send(self, data):
        client = self.server.connect()
        client.sendall(data)
        return client

    def long_request(self, chance):
        body = {"prompt": "long words " * chance.randint(1, 300), "max_tokens": chance.randint(1, 600), "ignore_eos": True, "stream": chance.random() < 0.5, "winnow": chance.choice(KEEPINGS)}
        return post_bytes(COMPLETION, body)

    def go_away(self, chance):
        client = self.send(self.long_request(chance))
        time.sleep(chance.choice([0, 0.001, 0.01, 0.1, 0.5]))
        if chance.random() < 0.5:  # a reset instead of an orderly close
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    def read_slowly(self, chance):
        with contextlib.closing(self.send(self.long_request(chance))) as client, contextlib.suppress(TimeoutError):
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            client.settimeout(2)
            for _ in range(chance.randint(1, 20)):
                client.recv(64)
                time.sleep(0.05)

    def close_one_side(self, chance):
        whole = self.long_request(chance)
        with contextlib.closing(self.send(whole[: chance.choice([len(whole), chance.randrange(len(whole))])])) as client:
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass

    def send_slowly(self, chance):
        with contextlib.closing(self.server.connect()) as client:
            for byte in b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * chance.randint(1, 40):
                client.sendall(bytes([byte]))
                time.sleep(0.02)

    def stay_idle(self, chance):
        idle = [self.server.connect() for _ in range(40)]
        time.sleep(chance.random())
        for client in idle:
            client.close()

    def send_nonsense(self, chance):
        body, status = chance.choice([
            (b'{"prompt": "\xff\xfe"}', 400),
            (b'{"prompt": ', 400),
            (b'{"prompt": ' + b"[" * 100 + b"]" * 100 + b"}", 400),
            (b'{"prompt": 5}', 400),
            (b'{"prompt": "x", "winnow": {"kv": "snapky"}}', 400),
            (chance.randbytes(chance.randint(0, 3000)), 400),
            (b"x" * 2_000_000, 413),
        ])  # fmt: skip
        with contextlib.suppress(ConnectionError):  # the server may close before everything is sent
            found, _, reply = self.server.ask("POST", COMPLETION, body)
            assert found == status and json.loads(reply)["error"]["message"], (found, reply)

    def be_greedy(self, chance):
        path, body = chance.choice(greedy_requests.ALL)(chance)
        status, _, reply = self.server.ask("POST", path, body)
        assert status == 200 or status in greedy_requests.REFUSALS, (status, reply[:300])
        assert status == 200 or json.loads(reply)["error"]["message"], reply[:300]

    def look(self, chance):
        path = chance.choice(["/health", "/slots", "/metrics", "/v1/models", "/props", "/nope"])
        assert self.server.ask("GET", path)[0] == (404 if path == "/nope" else 200)

    def be_hostile(self, chance):
        chance.choice(hostile_requests.ALL)(self.server, chance)

    # ---- all clients ------------------------------------------------------------------------------------------------

    def client(self, number):
        chance = random.Random(f"{self.seed}-{number}")
        acts = [self.answer] * 4 + [self.stream] * 2 + [self.go_away] * 4
        acts += [self.be_greedy, self.be_greedy]
        acts += [self.read_slowly, self.close_one_side, self.send_slowly, self.stay_idle, self.send_nonsense, self.be_hostile, self.look]
        while not self.end.is_set():
            act = chance.choice(acts)
            try:
                act(chance)
                self.done[act.__name__] += 1
            except (ConnectionError, http.client.HTTPException, AssertionError, OSError) as error:
                self.wrong.append(f"{act.__name__}: {error!r}")
                self.end.set()

    def run(self, seconds):
        """The server's resident bytes, second by second."""
        clients = [threading.Thread(target=self.client, args=(number,)) for number in range(CLIENTS)]
        for client in clients:
            client.start()
        bytes_held, until = [], time.monotonic() + seconds
        while time.monotonic() < until and not self.end.wait(1):
            bytes_held.append(resident(self.server.process.pid))
        self.end.set()
        for client in clients:
            client.join()
        return bytes_held


def resident(process):
    with open(f"/proc/{process}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def check_memory(held):
    """The first third is left out, since memory grows then: the largest requests meet for the first time, and the
    allocator keeps their memory."""
    third = len(held) // 3
    first, middle, last = (statistics.median(held[at : at + third]) for at in (0, third, 2 * third))
    print(f"resident: medians of each third {first:,.0f} {middle:,.0f} {last:,.0f} bytes, most {max(held):,}")
    assert last <= 1.05 * middle, "memory has grown"


def check_gauges(server):
    server.wait_until_idle()
    text = server.ask("GET", "/metrics")[2].decode()
    for name in ("vllm:num_requests_running", "vllm:num_requests_waiting"):
        assert re.findall(rf"^{name}\{{[^}}]*\}} (\S+)$", text, re.MULTILINE) == ["0"], name


def main():
    seconds, seed = 60 * float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1
    with tempfile.TemporaryDirectory() as work:
        model = make_tiny_gguf(f"{work}/tiny.gguf", "llama", "chatml")
        options = ["--context", "20000", "--max-body", "1MiB", "--parallel", "6", "--max-queue-requests", "6", "--memory", "200MiB"]
        with Server(model, *options) as server:
            load = Load(server, seed)
            held = load.run(seconds)
            print(dict(load.done))
            assert not load.wrong, (load.wrong, server.said()[-3000:])
            check_gauges(server)
            server.process.terminate()
            assert server.process.wait(PATIENCE) == 0, server.said()[-5000:]
    check_memory(held)


main()
