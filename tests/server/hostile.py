# SPDX-License-Identifier: Apache-2.0
"""Eight good clients beside hostile ones without a key: the good ones' answers, and their times between tokens.

WINNOW=PROGRAM hostile.py MODEL.gguf [MINUTES [TURNS [SEED]]]

The good clients run alone and beside CLIENTS hostile ones in turn (hostile_requests.py, greedy_requests.py, and
connections that stay idle, in a process of low priority). Each answer and its log probabilities must equal, bit for
bit, those that the request gets alone. Prints a table of the times between tokens and of the server's memory, and fails
unless the 95th percentile beside the hostile clients is at most twice that without them. Nothing else should run
meanwhile. MINUTES is the total time with hostile clients (10); the time without them is half as long.
"""

import collections
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import statistics
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cli"))

import greedy_requests  # noqa: E402
import hostile_requests  # noqa: E402
from program import PATIENCE  # noqa: E402
from service import Client, Server, post_bytes  # noqa: E402

GOOD, CLIENTS = 8, 24
KEY = {"X_Api_Key": "good"}
TEXT = (pathlib.Path(__file__).resolve().parents[2] / "examples/demo/war-and-peace.txt").read_text()


def request_of(number):
    """A request of some hundred tokens, different for each number."""
    text = TEXT[600 * number : 600 * number + 1500]
    keeping = [{}, {"kv": "snapkv", "budget": 128}, {"kv": "streaming-llm", "budget": "50%"}][number % 3]
    return {"prompt": text, "max_tokens": 48, "ignore_eos": True, "logprobs": 1, "stream": True, "winnow": keeping}


class Good:
    """Clients with a key; each repeats one of the requests whose answers are known."""

    def __init__(self, server):
        self.server = server
        self.alone = [(body, self.ask(body)[0]) for body in map(request_of, range(2 * GOOD))]
        self.wrong = []

    def ask(self, body):
        """The choices of a stream's events, and the times between them in milliseconds."""
        choices, times, last = [], [], None
        with contextlib.closing(self.server.opened()) as connection:
            connection.request("POST", greedy_requests.COMPLETION, json.dumps(body), {"X-Api-Key": "good"})
            reply = connection.getresponse()
            assert reply.status == 200, reply.read()
            for line in reply:
                if not line.startswith(b"data: {"):
                    continue
                now = time.perf_counter()
                if last is not None:
                    times.append((now - last) * 1e3)
                last = now
                choices += json.loads(line[6:])["choices"]
        for choice in choices:
            choice.pop("winnow", None)
            choice.pop("timings", None)
        return choices, times

    def client(self, number, until, times):
        chance = random.Random(number)
        while time.monotonic() < until and not self.wrong:
            body, alone = chance.choice(self.alone)
            try:
                choices, gaps = self.ask(body)
            except (OSError, AssertionError, ValueError) as error:
                self.wrong.append(repr(error))
                return
            if json.dumps(choices) != json.dumps(alone):
                self.wrong.append("an answer is not what it is alone")
            times += gaps

    def run(self, seconds):
        """Times between tokens, in milliseconds."""
        times, until = [], time.monotonic() + seconds
        clients = [threading.Thread(target=self.client, args=(i, until, times)) for i in range(GOOD)]
        for client in clients:
            client.start()
        for client in clients:
            client.join()
        assert not self.wrong, self.wrong
        return times


def be_greedy(server, chance):
    path, body = chance.choice(greedy_requests.ALL)(chance)
    server.ask("POST", path, body)


def stay_idle(server, chance):
    with contextlib.closing(server.connect()) as client:
        client.sendall(chance.choice([b"", b"POST / HTTP/1.1\r\nX-Slow: ", post_bytes(greedy_requests.COMPLETION, {"prompt": "x"})[:-5]]))
        time.sleep(5 * chance.random())


def attack(port, seed, end, done):
    """A process of hostile clients."""
    os.nice(19)
    server, counts = Client("127.0.0.1", port), collections.Counter()

    def client(number):
        chance = random.Random(f"{seed}-{number}")
        while not end.is_set():
            act = chance.choice([*hostile_requests.ALL, be_greedy, stay_idle])
            with contextlib.suppress(OSError, AssertionError, http.client.HTTPException, KeyError, ValueError):
                act(server, chance)  # replies are checked elsewhere; here most say that a key is missing
            counts[act.__name__] += 1
            time.sleep(chance.random() / 5)

    clients = [threading.Thread(target=client, args=(i,)) for i in range(CLIENTS)]
    for one in clients:
        one.start()
    for one in clients:
        one.join()
    done.put(dict(counts))


def memory(process):
    """Resident bytes of a process, now and at most."""
    with open(f"/proc/{process}/status") as file:
        lines = dict(line.split(":", 1) for line in file if ":" in line)
    return tuple(int(lines[name].split()[0]) << 10 for name in ("VmRSS", "VmHWM"))


def percentile(times, share):
    return sorted(times)[int(share * (len(times) - 1))]


def main():
    model = sys.argv[1]
    seconds, turns, seed = 60 * float(sys.argv[2] if len(sys.argv) > 2 else 10), int(sys.argv[3] if len(sys.argv) > 3 else 4), sys.argv[4] if len(sys.argv) > 4 else "1"
    rows = {"alone": [], "beside hostile clients": []}
    sent = collections.Counter()
    with tempfile.TemporaryDirectory() as work:
        with open(f"{work}/keys", "w") as file:
            file.write("good:good\n")
        options = ["--api-key-file", f"{work}/keys", "--parallel", "16", "--memory", "1GiB"]
        with Server(model, *options) as server:
            good = Good(server)
            print("memory before:", *(f"{bytes >> 20} MiB" for bytes in memory(server.process.pid)), flush=True)
            for turn in range(turns):
                rows["alone"] += good.run(seconds / turns / 2)
                alone = memory(server.process.pid)
                end, done = multiprocessing.Event(), multiprocessing.Queue()
                hostile = multiprocessing.Process(target=attack, args=(server.port, f"{seed}-{turn}", end, done))
                hostile.start()
                rows["beside hostile clients"] += good.run(seconds / turns)
                end.set()
                sent.update(done.get(timeout=PATIENCE))
                hostile.join()
                now = memory(server.process.pid)
                print(f"turn {turn + 1}: resident {alone[0] >> 20} MiB alone, {now[0] >> 20} MiB beside them, at most {now[1] >> 20} MiB", flush=True)
            server.process.terminate()
            assert server.process.wait(PATIENCE) == 0, server.said()[-3000:]
    print("connections of hostile clients:", sum(sent.values()), dict(sent))
    print("| ms between tokens | tokens | median | 95th percentile | 99th | most |\n|---|---:|---:|---:|---:|---:|")
    for name, times in rows.items():
        print(f"| {name} | {len(times):,} | {statistics.median(times):.1f} | {percentile(times, 0.95):.1f} | {percentile(times, 0.99):.1f} | {max(times):.1f} |")
    alone, beside = (percentile(times, 0.95) for times in rows.values())
    print(f"95th percentile: {beside / alone:.2f} times what it is alone")
    assert beside <= 2 * alone


if __name__ == "__main__":
    main()
