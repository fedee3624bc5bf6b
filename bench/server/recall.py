# SPDX-License-Identifier: Apache-2.0
"""Whether a fact of an early turn is found in a late one: known text, a cold start, and a prompt that was compressed
before the question."""

import itertools
import pathlib
import random

import turns
from peers import winnow

TOLD, ASKED = 2, 12  # turns
NOTED = "Noted."
RULES, PART = 3000, 600  # characters of prose
PROSE = pathlib.Path(__file__).resolve().parents[2] / "examples/demo/war-and-peace.txt"


def prose(draw):
    """A function that returns the next so many characters of a chapter, from a random place on."""
    text = " ".join(PROSE.read_text().split())
    characters = itertools.islice(itertools.cycle(text), draw.randrange(len(text)), None)
    return lambda length: "".join(itertools.islice(characters, length))


class Chat:
    """Messages by the model's chat template."""

    def __init__(self, rules):
        self.messages = [{"role": "system", "content": rules}]

    def add(self, part):
        self.messages += [{"role": "user", "content": part}, {"role": "assistant", "content": NOTED}]

    def ask(self, server, **fields):
        return turns.ask(server, self.messages[:-1], **fields)

    def question(self, server, place, **fields):
        asked = {"role": "user", "content": f"What is the special magic number for {place}? Answer with the number alone."}
        return turns.ask(server, [*self.messages, asked], **fields)


class Plain:
    """Text for a model without a chat template, which goes on with it."""

    def __init__(self, rules):
        self.text = rules

    def add(self, part):
        self.text += "\n\n" + part

    def ask(self, server, **fields):
        return turns.complete(server, self.text, **fields)

    def question(self, server, place, **fields):
        return turns.complete(server, self.text + f"\n\nThe special magic number for {place} mentioned above is", **fields)


def part(words, place, number):
    return f"{words(PART)} The special magic number for {place} is {number}. {words(PART)}"


def measure(arguments, _):
    places = ["Lisbon", "Oslo", "Nairobi", "Quito", "Hanoi", "Tunis", "Riga", "Lima", "Accra", "Perth"]
    print("| method | conversations | found over known text | from a cold start | same answers | share read in the last turn | `question-agnostic` |\n|---|" + "---:|" * 6)
    for method in arguments.methods:
        kv, _, budget = method.partition("@")
        keeping = {"kv": kv, "budget": budget or 128}
        draw = random.Random(arguments.seed)
        known = cold = same = agnostic = read = prompts = 0
        with winnow(arguments, method, *arguments.option, **keeping) as server:
            for i in range(arguments.conversations):
                number, place, words = draw.randrange(100_000, 1_000_000), places[i % len(places)], prose(draw)
                talk = (Plain if arguments.plain else Chat)(words(RULES))
                for turn in range(1, ASKED):
                    talk.add(part(words, place, number) if turn == TOLD else words(2 * PART))
                    talk.ask(server)
                answer = talk.question(server, place)
                cold_answer = talk.question(server, place, **server.cold)
                staged = talk.question(server, place, cache_salt="agnostic", winnow={**keeping, "protocol": "question-agnostic"})
                known, cold, agnostic = (n + (str(number) in a.text) for n, a in ((known, answer), (cold, cold_answer), (agnostic, staged)))
                same += answer.text == cold_answer.text
                read, prompts = read + answer.prompt - answer.cached, prompts + answer.prompt
        print(f"| {method} | {arguments.conversations} | {known} | {cold} | {same} | {read / prompts:.3f} | {agnostic} |", flush=True)
