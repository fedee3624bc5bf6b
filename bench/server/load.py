# SPDX-License-Identifier: Apache-2.0
"""`winnow serve` beside llama.cpp's server on this machine, in turns.

load.py throughput|latency|prefix|memory|turns|conversations|branches|recall --model MODEL.gguf --winnow PROGRAM [--llama-server PROGRAM] [--threads 2] [--repetitions 3]

throughput  CLIENTS requests at once, prompts of 2,000 to 4,000 tokens, 128 new ones: requests per minute
latency     the time between tokens of 4 streams while a prompt of 8,192 tokens is read, and winnow's longest quantum: its bound is
            --max-itl and one quantum
prefix      the time to the first token over a text of 8,000 tokens, with and without the text in the server's store
turns       a conversation of TURNS turns that begins with RULES tokens and gets 250 tokens a turn: the share of all prompt tokens that
            is read, the time to the first token by turn and from a cold start, and whether both answers are the same
conversations  --conversations requests that share a system prompt of 4,000 tokens, --clients at a time: bytes of their stored texts
branches    a conversation with another last message, and with a message edited in its middle: the tokens that are read
recall      a number told in turn 2 and asked for in turn 12: how often each method finds it over known text and from a cold start
memory      64 requests of 4,000 tokens in the memory of 8 full caches: bytes that each holds, and the process's peak

All prompts differ from their first token on, even between repetitions. Each turn starts its own server. Prints tables
in Markdown: the minimum and the median of the repetitions.
"""

import argparse
import random
import statistics
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import memory
import recall
import sharing
import turns
from peers import Texts, llama, winnow

OWN = {"memory": memory.measure, "turns": turns.measure, "conversations": sharing.conversations, "branches": sharing.branches, "recall": recall.measure}
ADA = {"kv": "ada-snapkv", "budget": 512}


def in_turns(arguments, servers, measure):
    """{server's name: [result of `measure` in each repetition]}"""
    out = {}
    for repetition in range(arguments.repetitions):
        for server in servers:
            if arguments.only not in server.name:
                continue
            with server:
                out.setdefault(server.name, []).append(measure(server))
            print(f"<!-- {repetition + 1}: {server.name}: {out[server.name][-1]} -->", flush=True)
    return out


def row(name, *columns):
    """Minimum and median of each column's figures; a server may have none."""
    cells = ("– | –" if None in c else f"{min(c):,.4g} | {statistics.median(c):,.4g}" for c in columns)
    print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


def throughput(arguments, texts):
    lengths = [2000 + 2000 * i // max(arguments.clients - 1, 1) for i in range(arguments.clients)]

    def measure(server):
        prompts = [texts.prompt(length) for length in lengths]
        before, begin = server.processor_seconds(), time.perf_counter()
        with ThreadPoolExecutor(len(prompts)) as clients:
            answers = list(clients.map(lambda prompt: server.ask(prompt, max_tokens=128), prompts))
        minutes = (time.perf_counter() - begin) / 60
        assert [a["usage"]["prompt_tokens"] for a in answers] == lengths and all(a["usage"]["completion_tokens"] == 128 for a in answers)
        return len(prompts) / minutes, server.processor_seconds() - before

    parallel = ["--parallel", str(arguments.clients), *arguments.option]
    servers = [winnow(arguments, "full", *parallel), winnow(arguments, "ada-snapkv @ 512", *parallel, **ADA)]
    servers += [llama(arguments, arguments.clients, *options.split()) for options in arguments.flags]
    rates = in_turns(arguments, servers, measure)
    print("| requests per minute | least | median | processor seconds: least | median |\n|---|" + "---:|" * 4)
    for name, figures in rates.items():
        row(name, *zip(*figures))


def latency(arguments, texts):
    def gaps(server, stream, stop, out):
        """Milliseconds between the tokens of a stream, until the long prompt has been read."""
        last = None
        for now in server.stream(prompt=stream, max_tokens=4000):
            if last is not None:
                out.append((last, now))
            last = now
            if stop.is_set():
                return

    def measure(server):
        stop, times = threading.Event(), [[] for _ in range(4)]
        threads = [threading.Thread(target=gaps, args=(server, texts.prompt(200), stop, out)) for out in times]
        for thread in threads:
            thread.start()
        while any(len(out) < 16 for out in times):
            time.sleep(0.01)
        begin = time.perf_counter()
        server.ask(texts.prompt(8192), max_tokens=1)
        end = time.perf_counter()
        stop.set()
        for thread in threads:
            thread.join()
        during = sorted((b - a) * 1e3 for out in times for a, b in out if b > begin and a < end)
        return statistics.mean(during), during[int(0.99 * (len(during) - 1))], during[-1], server.longest_quantum(), end - begin

    servers = [winnow(arguments, f"--max-itl {ms}", "--max-itl", str(ms), *arguments.option) for ms in arguments.max_itl]
    servers += [llama(arguments, 5, *options.split()) for options in arguments.flags]
    rows = in_turns(arguments, servers, measure)
    print("| ms between tokens | mean: least | median | p99: least | median | most: least | median | longest quantum: least | median | s to read the prompt: least | median |")
    print("|---|" + "---:|" * 10)
    for name, figures in rows.items():
        row(name, *zip(*figures))


def prefix(arguments, texts):
    def first_token(server, text, question):
        """Milliseconds until the first token, and milliseconds of processor time."""
        parts = [{"type": "text", "text": text}, {"type": "text", "text": question}]
        before, begin = server.processor_seconds(), time.perf_counter()
        pieces = server.stream("/v1/chat/completions", messages=[{"role": "user", "content": parts}], max_tokens=2)
        took = next(pieces) - begin
        used = server.processor_seconds() - before
        pieces.close()
        return took * 1e3, used * 1e3

    def measure(server):
        text = server.words(texts)(8000)
        read = first_token(server, text, "What is the most important point of this text?")
        again = [first_token(server, text, f"Name {word} in it, and say where it is.") for word in ("a method", "a file", "an option", "a table", "a speed")]
        kept = [statistics.median(column) for column in zip(*again)]
        return read[0], kept[0], kept[0] / read[0], kept[1] / read[1]

    servers = []
    for name, keeping in (("full", {"kv": "full"}), ("ada-snapkv @ 512", ADA)):
        servers.append(winnow(arguments, name, *arguments.option, protocol="question-agnostic", **keeping))
    rows = in_turns(arguments, servers, measure)
    print("| ms to the first token | read: least | median | kept: least | median | ratio: least | median | ratio of processor time: least | median |\n|---|" + "---:|" * 8)
    for name, figures in rows.items():
        row(name, *zip(*figures))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=sorted([*OWN, "throughput", "latency", "prefix"]))
    parser.add_argument("--model", required=True)
    parser.add_argument("--winnow", default="winnow")
    parser.add_argument("--llama-server", help="bench/server/llama_server.sh prints its path")
    parser.add_argument("--flags", nargs="*", default=["-fa on", "-fa off"], help="of llama-server, each as one argument; empty: without it")
    parser.add_argument("--option", action="append", default=[], help="one more option of winnow serve, as --option=--texts=DIR; may be repeated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repetitions", type=int, default=3)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--max-itl", type=int, nargs="+", default=[50])
    parser.add_argument("--only", default="", help="servers that have this in their names")
    parser.add_argument("--turns", type=int, default=12)
    parser.add_argument("--rules", type=int, default=2300)
    parser.add_argument("--methods", nargs="*", default=["default"], help="of turns and recall: METHOD or METHOD@BUDGET; default: no options; unstored: every prompt is read as a whole")
    parser.add_argument("--restart", action="store_true", help="of turns: kill the server before the last turn, and start it again; needs --option=--texts=WHERE")
    parser.add_argument("--cold", default="", help="of turns: servers that have this in their names read the last prompt from a cold start, too")
    parser.add_argument("--plot", help="of turns: an SVG file of the time to the first token by turn; needs gnuplot")
    parser.add_argument("--conversations", type=int, default=1000, help="of conversations and recall")
    parser.add_argument("--plain", action="store_true", help="of recall: a text without a chat template, for base models")
    parser.add_argument("--context", type=int, default=9216, help="tokens of one request at most; more than the default model was trained with")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if not arguments.llama_server:
        arguments.flags = []
    with winnow(arguments, "full") as server:
        texts = Texts(server, random.Random(arguments.seed))
    {"throughput": throughput, "latency": latency, "prefix": prefix, **OWN}[arguments.what](arguments, texts)


main()
