# SPDX-License-Identifier: Apache-2.0
"""Whether a fact of an early turn is found in a late one: known text, a cold start, and a prompt that was compressed
before the question."""

import random

import turns
from peers import winnow

TOLD, ASKED = 2, 12  # turns
NOTED = "Noted."


def question_of(place):
    return f"What is the special magic number for {place}? Answer with the number alone."


def conversation(server, texts, number, place):
    """Messages up to the question. Answers are given, so that all methods see the same text."""
    words = server.words(texts)
    messages = [{"role": "system", "content": words(600)}]
    for turn in range(1, ASKED):
        told = f" The special magic number for {place} is {number}. " if turn == TOLD else " "
        messages += [{"role": "user", "content": words(120) + told + words(120)}, {"role": "assistant", "content": NOTED}]
    return [*messages, {"role": "user", "content": question_of(place)}]


def found(server, messages, number, **fields):
    answer = turns.ask(server, messages, **fields)
    return str(number) in answer.text, answer


def measure(arguments, texts):
    places = ["Lisbon", "Oslo", "Nairobi", "Quito", "Hanoi", "Tunis", "Riga", "Lima", "Accra", "Perth"]
    print("| method | conversations | found over known text | from a cold start | same answers | share read in the last turn | `question-agnostic` |\n|---|" + "---:|" * 6)
    for method in arguments.methods:
        kv, _, budget = method.partition("@")
        keeping = {"kv": kv, "budget": budget or 128}
        draw = random.Random(arguments.seed)
        known = cold = same = agnostic = read = prompts = 0
        with winnow(arguments, method, *arguments.option, **keeping) as server:
            for i in range(arguments.conversations):
                number, place = draw.randrange(100_000, 1_000_000), places[i % len(places)]
                messages = conversation(server, texts, number, place)
                for turn in range(2, len(messages), 2):
                    turns.ask(server, messages[:turn])
                hit, answer = found(server, messages, number)
                cold_hit, cold_answer = found(server, messages, number, **server.cold)
                agnostic_hit, _ = found(server, messages, number, cache_salt="agnostic", winnow={**keeping, "protocol": "question-agnostic"})
                known, cold, agnostic = known + hit, cold + cold_hit, agnostic + agnostic_hit
                same += answer.text == cold_answer.text
                read, prompts = read + answer.prompt - answer.cached, prompts + answer.prompt
        print(f"| {method} | {arguments.conversations} | {known} | {cold} | {same} | {read / prompts:.3f} | {agnostic} |", flush=True)
