# SPDX-License-Identifier: Apache-2.0
"""64 requests with small caches in the memory that holds 8 with the full cache."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

from peers import winnow

TOKENS, NEW, REQUESTS, FULL = 4000, 192, 64, 8
SNAPKV = {"kv": "snapkv", "budget": 256}


def watched(server, prompts):
    """The states of all slots, polled while the prompts are answered at the same time."""
    seen, end = [], threading.Event()

    def watch():
        while not end.is_set():
            seen.append(server.good("GET", "/slots"))
            time.sleep(0.002 if len(prompts) == 1 else 0.1)

    watcher = threading.Thread(target=watch)
    watcher.start()
    with ThreadPoolExecutor(len(prompts)) as clients:
        answers = list(clients.map(lambda prompt: server.ask(prompt, max_tokens=NEW), prompts))
    end.set()
    watcher.join()
    assert all(answer["usage"]["completion_tokens"] == NEW for answer in answers)
    return seen


def answering(seen):
    return [slot for slots in seen for slot in slots if slot["phase"] == "answering"]


def alone(arguments, texts):
    """{tokens of the answer: bytes held}, and the maximum of a full cache."""
    by_tokens = {}
    with winnow(arguments, "snapkv", **SNAPKV) as server:
        for _ in range(3):
            for slot in answering(watched(server, [texts.prompt(TOKENS)])):
                assert by_tokens.setdefault(slot["completion_tokens"], slot["bytes_held"]) == slot["bytes_held"]
    with winnow(arguments, "full") as server:
        full = max(slot["bytes_held"] for slot in answering(watched(server, [texts.prompt(TOKENS)])))
    return by_tokens, full


def measure(arguments, texts):
    held, full = alone(arguments, texts)
    memory = FULL * full
    options = ["--parallel", str(REQUESTS), "--memory", str(memory), "--prefix-memory", "0", "--max-itl", "4000", *arguments.option]
    with winnow(arguments, "snapkv", *options, **SNAPKV) as server:
        weights = server.good("GET", "/v1/models")["data"][0]["meta"]["size"]
        before = server.peak_bytes()
        seen = watched(server, [texts.prompt(TOKENS) for _ in range(REQUESTS)])
        peak = server.peak_bytes()
    together = [slot for slot in answering(seen) if slot["completion_tokens"] in held]
    others = [slot for slot in together if slot["bytes_held"] != held[slot["completion_tokens"]]]
    at_once = [sum(slot["phase"] == "answering" for slot in slots) for slots in seen]
    limit = 1.1 * (memory + weights)
    print("| | bytes |\n|---|---:|")
    for name, value in (
        (f"a full cache after {TOKENS} + {NEW} tokens", full),
        (f"--memory: {FULL} of them", memory),
        ("the most that was promised at a time", max(sum(slot["bytes_promised"] for slot in slots if slot["is_processing"]) for slots in seen)),
        ("the most that was held at a time", max(sum(slot["bytes_held"] for slot in slots) for slots in seen)),
        (f"the model's weights, {weights:,}, and --memory, and 10 %", round(limit)),
        ("the process at its peak", peak),
        ("the process before the first request", before),
    ):
        print(f"| {name} | {value:,} |")
    print(f"\n{REQUESTS} requests, {max(at_once)} of them answered at once; what each holds was compared {len(together)} times with the same alone: {len(others)} differ")
    assert max(at_once) > FULL and together and not others and peak <= limit
