# SPDX-License-Identifier: Apache-2.0
"""A conversation that grows, as an agent's does: every turn sends all of it again."""

import dataclasses
import subprocess
import time

from peers import llama, winnow

CHAT = "/v1/chat/completions"
PER_TURN = 250  # tokens of a tool's result
ANSWER = 32  # tokens


@dataclasses.dataclass
class Turn:
    text: str
    first_token: float  # milliseconds
    prompt: int  # tokens
    cached: int  # tokens of the prompt that were not read


def ask(server, messages, **fields):
    begin, first, text, usage = time.perf_counter(), None, "", {}
    for now, event in server.events(CHAT, messages=messages, max_tokens=ANSWER, stream_options={"include_usage": True}, **fields):
        more = "".join(choice.get("delta", {}).get("content") or "" for choice in event["choices"])
        first = first or (now if more else None)
        text += more
        usage = event.get("usage") or usage
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens", 0)
    return Turn(text, (first - begin) * 1e3, usage["prompt_tokens"], cached)


def complete(server, text, **fields):
    """The same for a text that the model goes on with."""
    reply = server.ask(text, max_tokens=ANSWER, **fields)
    cached = reply["usage"].get("prompt_tokens_details", {}).get("cached_tokens", 0)
    return Turn(reply["choices"][0]["text"], 0, reply["usage"]["prompt_tokens"], cached)


def conversation(arguments, server, texts):
    """The turns, the server's peak memory after them, and the last turn from a cold start if the server is to make one."""
    words = server.words(texts)
    messages, turns = [{"role": "system", "content": words(arguments.rules)}], []
    for turn in range(arguments.turns):
        if arguments.restart and turn == arguments.turns - 1:
            server.restart()
        messages.append({"role": "user", "content": words(PER_TURN)})
        turns.append(ask(server, messages))
        last = list(messages)
        messages.append({"role": "assistant", "content": turns[-1].text})
    peak = server.peak_bytes()
    return turns, peak, ask(server, last, **server.cold) if arguments.cold in server.name else None


def show(name, turns, cold, peak):
    prompts = sum(turn.prompt for turn in turns)
    read = sum(turn.prompt - turn.cached for turn in turns) / prompts
    last = turns[-1]  # it has all that any turn has
    beside = "– | – | –"
    if cold:
        beside = f"{cold.first_token:,.0f} | {last.first_token / cold.first_token:.3f} | {'yes' if last.text == cold.text else 'no'}"
    print(f"| {name} | {last.prompt:,} | {last.prompt / prompts:.3f} | {read:.3f} | {last.first_token:,.0f} | {beside} | {peak:,} |", flush=True)
    print(f"<!-- {name}: ms to the first token by turn: {' '.join(f'{turn.first_token:.0f}' for turn in turns)} -->", flush=True)


def plot(path, series):
    """Writes the time to the first token by turn as an SVG file."""
    blocks = "\n\n\n".join(f'"{name}"\n' + "\n".join(f"{i + 1} {turn.first_token / 1e3}" for i, turn in enumerate(turns)) for name, turns in series.items())
    script = f"""set terminal svg size 720,360 background "white"
set output "{path}"
set xlabel "turn"
set ylabel "seconds to the first token"
set logscale y
set grid
set key outside right top noenhanced
$turns << END
{blocks}
END
plot for [i=0:{len(series) - 1}] $turns index i with linespoints title columnheader(1)
"""
    subprocess.run(["gnuplot"], input=script, text=True, check=True)


def servers_of(arguments):
    for method in arguments.methods:
        kv, _, budget = method.partition("@")
        keeping = {} if kv in ("default", "unstored") else {"kv": kv}
        if budget:
            keeping["budget"] = budget
        server = winnow(arguments, method, *arguments.option, **keeping)
        if kv == "unstored":
            server.extra["cache_prompt"] = False
        yield server
    for options in arguments.flags:
        yield llama(arguments, 1, *options.split(), cached=True)


def measure(arguments, texts):
    print("| server | tokens of the last prompt | share of all prompt tokens that is new | share that is read | ms to the last turn's first token | from a cold start | ratio | same answer | peak bytes of the process |\n|---|" + "---:|" * 6 + "---|---:|")
    series = {}
    for _ in range(arguments.repetitions):
        for server in servers_of(arguments):
            with server:
                turns, peak, cold = conversation(arguments, server, texts)
                show(server.name, turns, cold, peak)
                series[server.name] = turns
    if arguments.plot:
        plot(arguments.plot, series)
