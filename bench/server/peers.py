# SPDX-License-Identifier: Apache-2.0
"""The measured servers, which run one at a time and get the same requests."""

import contextlib
import http.client
import json
import os
import re
import socket
import subprocess
import tempfile
import time

PATIENCE = 1800  # seconds for one answer


class Server:
    """A server that runs for one turn. `extra` are fields of its requests, `cold` those of one that finds no known text."""

    def __init__(self, name, command, extra, cold):
        self.name, self.command, self.extra, self.cold = name, command, extra, cold

    def __enter__(self):
        self.log = tempfile.TemporaryFile()
        self.start()
        return self

    def start(self):
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.process = subprocess.Popen([*self.command, "--port", str(self.port)], stdout=self.log, stderr=self.log)
        while not self.is_ready():
            assert self.process.poll() is None, self.said()
            time.sleep(0.05)
        self.ask(list(range(1000, 1032)), max_tokens=4)  # warm-up

    def restart(self):
        """Starts another process in place of this one, which is killed."""
        self.process.kill()
        self.process.wait()
        self.start()

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def said(self):
        self.log.seek(0)
        return f"{' '.join(self.command)}: {self.log.read().decode()[-2000:]}"

    def is_ready(self):
        with contextlib.suppress(OSError):
            return self.send("GET", "/health")[0].status == 200
        return False

    def connect(self, method, path, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request(method, path, body and json.dumps(body), {"Content-Type": "application/json"})
        return connection

    def send(self, method, path, body=None):
        """The reply and its JSON."""
        with contextlib.closing(self.connect(method, path, body)) as connection:
            reply = connection.getresponse()
            return reply, json.loads(reply.read() or "null")

    def good(self, method, path, body=None):
        reply, value = self.send(method, path, body)
        assert reply.status == 200, value
        return value

    def ask(self, prompt, **fields):
        return self.good("POST", "/v1/completions", {**self.fields(fields), "prompt": prompt})

    def fields(self, more):
        return {"temperature": 0, "ignore_eos": True, **self.extra, **more}

    def events(self, path="/v1/completions", **fields):
        """The events of a streamed answer, with their times of arrival. Closing the iterator ends the request."""
        with contextlib.closing(self.connect("POST", path, {**self.fields(fields), "stream": True})) as connection:
            reply = connection.getresponse()
            assert reply.status == 200, reply.read()
            for line in reply:
                if not line.startswith(b"data: {"):
                    assert line in (b"\n", b"data: [DONE]\n") or line.startswith(b":"), line
                    continue
                event = json.loads(line[6:])
                assert "error" not in event, event
                yield time.perf_counter(), event

    def stream(self, path="/v1/completions", **fields):
        """The times at which deltas with text arrive."""
        for now, event in self.events(path, **fields):
            if any(choice.get("text") or choice.get("delta", {}).get("content") for choice in event["choices"]):
                yield now

    def words(self, texts):
        """A function that returns the next text of so many tokens."""
        return lambda length: self.good("POST", "/detokenize", {"tokens": texts.prompt(length)})["content"]

    def processor_seconds(self):
        """Processor time of all threads so far, which other work on the machine disturbs less than elapsed time."""
        with open(f"/proc/{self.process.pid}/stat") as file:
            user, system = file.read().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def longest_quantum(self):
        """Milliseconds of the longest prefill quantum that answers waited for (winnow only, otherwise None)."""
        with contextlib.closing(self.connect("GET", "/metrics", None)) as connection:
            found = re.search(r"^winnow_prefill_longest_quantum_seconds\{.*\} (\S+)$", connection.getresponse().read().decode(), re.MULTILINE)
        return float(found[1]) * 1e3 if found else None

    def peak_bytes(self):
        """Peak resident memory, by the kernel's count."""
        with open(f"/proc/{self.process.pid}/status") as status:
            return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) * 1024


def winnow(arguments, name, *options, **keeping):
    command = [arguments.winnow, "serve", "-m", arguments.model, "--threads", str(arguments.threads), "--context", str(arguments.context), *options]
    return Server(f"winnow {name}", command, {"winnow": keeping} if keeping else {}, {"cache_salt": "cold"})


def llama(arguments, slots, *options, cached=False):
    """llama.cpp with a slot for each client. Unless `cached`, slots do not search for similar prompts."""
    context = ["--override-kv", f"llama.context_length=int:{arguments.context}", "-np", str(slots), "-c", str(slots * arguments.context)]
    no_caches = ["--no-cache-prompt", "--cache-ram", "0", "--ctx-checkpoints", "0", "-sps", "0"]
    threads = ["-t", str(arguments.threads), "-tb", str(arguments.threads)]
    command = [arguments.llama_server, "-m", arguments.model, "--no-ui", *threads, *context, "--no-context-shift"]
    command += [*([] if cached else no_caches), *options]
    return Server(" ".join(["llama-server", *options]), command, {"cache_prompt": cached}, {"cache_prompt": False})


class Texts:
    """An endless series of prompts of tokens from this project's documents. No two begin with the same token."""

    def __init__(self, server, random):
        root = os.path.join(os.path.dirname(__file__), "..", "..")
        files = ["README.md", *(f"docs/{name}" for name in sorted(os.listdir(os.path.join(root, "docs"))) if name.endswith(".md"))]
        words = "\n".join(open(os.path.join(root, name)).read() for name in files)
        self.tokens = server.good("POST", "/tokenize", {"content": words})["tokens"]
        self.random = random
        self.first = random.sample(sorted(set(self.tokens)), k=len(set(self.tokens)))

    def prompt(self, length):
        out = [self.first.pop()]
        while len(out) < length:
            begin = self.random.randrange(len(self.tokens) - 64)
            out += self.tokens[begin : begin + 64]
        return out[:length]
