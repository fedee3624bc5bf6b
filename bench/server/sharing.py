# SPDX-License-Identifier: Apache-2.0
"""Texts that begin alike: the memory of many conversations with one system prompt, and what a branch of a conversation
reads."""

import contextlib
import re
import statistics
import time
from concurrent.futures import ThreadPoolExecutor

import turns
from peers import winnow

BLOCK = 64  # tokens
SYSTEM, TAIL = 4000, 60  # tokens
MEMORY = 2 << 30
BRANCHES = 8


def stored(server):
    """Bytes and blocks of texts in memory."""
    with contextlib.closing(server.connect("GET", "/metrics", None)) as connection:
        metrics = connection.getresponse().read().decode()
    return [int(float(re.search(rf'^winnow_text_{what}{{.*tier="memory".*}} (\S+)$', metrics, re.MULTILINE)[1])) for what in ("bytes", "blocks")]


def conversations(arguments, texts):
    """Asks --conversations questions after one system prompt, --clients at a time."""
    with winnow(arguments, "default", "--parallel", str(arguments.clients), "--prefix-memory", str(MEMORY), *arguments.option) as server:
        words = server.words(texts)
        system = {"role": "system", "content": words(SYSTEM)}
        first = turns.ask(server, [system, {"role": "user", "content": words(TAIL)}])
        one_bytes, one_blocks = stored(server)
        asked = [[system, {"role": "user", "content": words(TAIL)}] for _ in range(arguments.conversations - 1)]
        begin = time.perf_counter()
        with ThreadPoolExecutor(arguments.clients) as clients:
            answers = list(clients.map(lambda messages: turns.ask(server, messages), asked))
        minutes = (time.perf_counter() - begin) / 60
        all_bytes, all_blocks = stored(server)
        peak = server.peak_bytes()
    tails = sum(answer.prompt // BLOCK - answer.cached // BLOCK for answer in answers)
    print(f"| conversations | bytes after the first | after all | blocks after the first | after all | blocks of all tails at most | peak of the process |\n|---|{'---:|' * 6}")
    print(f"| {arguments.conversations:,} | {one_bytes:,} | {all_bytes:,} | {one_blocks:,} | {all_blocks:,} | {tails + arguments.conversations:,} | {peak:,} |")
    print(f"\ntokens found of {first.prompt:,}: {min(a.cached for a in answers):,} to {max(a.cached for a in answers):,}; {len(answers) / minutes:.0f} requests per minute; "
          f"ms to the first token: {first.first_token:,.0f} alone and cold, then {statistics.median(a.first_token for a in answers):,.0f} (median, {arguments.clients} at once)")  # fmt: skip


def branches(arguments, texts):
    """Asks variants of one conversation, and compares the tokens that are read with those that differ."""
    with winnow(arguments, "default", *arguments.option) as server:
        words = server.words(texts)
        base = [{"role": "system", "content": words(arguments.rules)}]
        for _ in range(6):
            base += [{"role": "user", "content": words(turns.PER_TURN)}, {"role": "assistant", "content": words(turns.ANSWER)}]
        base.append({"role": "user", "content": words(turns.PER_TURN)})

        def length(messages):
            """Tokens of a prompt."""
            return len(server.good("POST", "/tokenize", {"content": server.good("POST", "/apply-template", {"messages": messages})["prompt"], "parse_special": True})["tokens"])

        def changed(index):
            return [*base[:index], {**base[index], "content": words(turns.PER_TURN)}, *base[index + 1 :]]

        variants = [("first time", base, 0), ("again", base, len(base)), ("another last message", changed(len(base) - 1), len(base) - 1), ("a message edited in the middle", changed(5), 5)]
        variants += [(f"another last message, {i + 1} of {BRANCHES}", changed(len(base) - 1), len(base) - 1) for i in range(BRANCHES)]
        print("| prompt | tokens | in common with an earlier one | read | same answer as from a cold start |\n|---|---:|---:|---:|---|")
        for name, messages, common in variants:
            answer = turns.ask(server, messages)
            cold = turns.ask(server, messages, cache_salt=name)
            shared = length(messages[:common]) if common else 0
            print(f"| {name} | {answer.prompt:,} | {shared:,} | {answer.prompt - answer.cached:,} | {'yes' if answer.text == cold.text else 'no'} |", flush=True)
