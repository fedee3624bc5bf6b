# SPDX-License-Identifier: Apache-2.0
"""Each field for choosing tokens and for ending answers works as OpenAI and vLLM document it, alone and combined with
each other field."""

import itertools

import pytest

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
TEXT = "some words to read, and then some more of them " * 4
GREEDY = {"prompt": TEXT, "max_tokens": 12, "ignore_eos": True}


def choice(server, **fields):
    return server.good(COMPLETION, {**GREEDY, **fields})["choices"][0]


def tokens(server, **fields):
    return choice(server, **fields, logprobs=0)["logprobs"]["tokens"]


def biased(*tokens, by=100):
    return {str(token): by for token in tokens}


def name(server, token):
    return server.good("/detokenize", {"tokens": [token]})["content"]


RED, BLUE = 100, 101  # letters: the tiny model has a token for each byte


def test_frequency_penalty_counts_each_time_in_the_whole_answer(server):
    got = tokens(server, max_tokens=400, logit_bias=biased(RED, BLUE), frequency_penalty=2)
    favoured = [got.count(name(server, token)) for token in (RED, BLUE)]
    # Each occurrence costs 2 of the bias of 100, and the model's own logits differ by less than 20.
    assert 30 <= min(favoured) and max(favoured) <= 65, favoured


def test_presence_penalty_costs_once(server):
    got = tokens(server, max_tokens=200, logit_bias={str(RED): 100, str(BLUE): 99}, presence_penalty=2)
    assert got.count(name(server, RED)) + got.count(name(server, BLUE)) == 200
    changed = tokens(server, logit_bias=biased(RED), presence_penalty=2)
    assert changed == [name(server, RED)] * 12, "2 of 100 is not enough"


def test_repetition_penalty_looks_at_the_prompt_and_the_others_do_not(server):
    bias = {str(RED): 100, str(BLUE): 70}
    for prompt, fields, expected in (
        ([5, 6, 7], {"repetition_penalty": 2}, RED),
        ([5, RED, 7], {"repetition_penalty": 2}, BLUE),
        ([5, RED, 7], {"frequency_penalty": 2, "presence_penalty": 2}, RED),
        ([RED] + [5] * 200, {"repetition_penalty": 2}, BLUE),
    ):
        got = tokens(server, prompt=prompt, max_tokens=1, logit_bias=bias, **fields)
        assert got == [name(server, expected)], (prompt[:3], fields)


def test_repetition_penalty_looks_at_a_text_that_was_kept(server):
    def body(n):
        content = [{"type": "text", "text": "d" * 50}, {"type": "text", "text": f"{n}?"}]
        keep = {"kv": "streaming-llm", "budget": 20, "protocol": "question-agnostic"}
        bias = {str(server.good("/tokenize", {"content": "d"})["tokens"][-1]): 100, str(BLUE + 20): 70}
        return {"messages": [{"role": "user", "content": content}], "max_tokens": 1, "ignore_eos": True, "logit_bias": bias, "repetition_penalty": 2, "winnow": keep}

    first, second = server.good(CHAT, body(1)), server.good(CHAT, body(2))
    assert second["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    texts = [reply["choices"][0]["message"]["content"] for reply in (first, second)]
    assert texts == [name(server, BLUE + 20)] * 2, "also of what was evicted"


@pytest.mark.parametrize("temperature", [1e-6, 1e-10, 1e-38, 1e-40, 1e-300])
def test_a_temperature_near_zero_is_greedy(server, temperature):
    greedy = choice(server)["text"]
    for more in ({}, {"top_p": 0.9}, {"min_p": 0.05}, {"top_k": 40, "top_p": 0.95}, {"seed": 3, "top_p": 1, "top_k": -1, "min_p": 0}):
        assert choice(server, temperature=temperature, **more)["text"] == greedy, more


@pytest.mark.parametrize("cut", [{"top_k": 1}, {"top_p": 0}, {"min_p": 1}])
def test_what_cuts_all_but_one_is_greedy(server, cut):
    assert choice(server, temperature=1.5, seed=5, **cut)["text"] == choice(server)["text"]


def test_greedy_ignores_cuts_and_seeds(server):
    assert choice(server, top_p=0.1, top_k=2, min_p=0.9, seed=9)["text"] == choice(server)["text"]


def test_each_of_several_answers_has_the_next_seed(server):
    sampled = {"temperature": 1.3, "frequency_penalty": 0.5, "repetition_penalty": 1.2, "top_k": 0}
    together = server.good(COMPLETION, {**GREEDY, **sampled, "n": 4, "seed": 11})["choices"]
    assert [one["text"] for one in together] == [choice(server, **sampled, seed=11 + i)["text"] for i in range(4)]


def test_log_probabilities_are_the_models_own(server):
    plain = choice(server, logprobs=3)["logprobs"]
    changed = choice(server, logprobs=3, logit_bias=biased(RED), frequency_penalty=1, repetition_penalty=1.5, temperature=2, seed=1)["logprobs"]
    assert changed["top_logprobs"][0] == plain["top_logprobs"][0] or list(plain["top_logprobs"][0].items()) == list(changed["top_logprobs"][0].items())[:3]
    assert changed["token_logprobs"][0] < plain["token_logprobs"][0]


def ends_after(server, least, **fields):
    """The number of tokens and the text of an answer; checks that a stream gives the same."""
    body = {**GREEDY, "max_tokens": 40, "min_tokens": least, **fields}
    reply = server.good(COMPLETION, body)
    streamed = "".join(part["text"] for event in server.stream(COMPLETION, body) for part in event["choices"])
    assert streamed == reply["choices"][0]["text"]
    return reply["usage"]["completion_tokens"], reply["choices"][0]


def test_no_stop_text_ends_an_answer_before_its_least_tokens(server):
    bias = biased(RED)
    letter = name(server, RED)
    for least in (0, 1, 5, 39):
        count, got = ends_after(server, least, logit_bias=bias, stop=[letter * 2])
        # The stop text is completed only by a token after the minimum.
        assert (count, got["finish_reason"]) == (max(2, least + 1), "stop"), (least, got)
        assert got["text"] == letter * (count - 2)
    assert ends_after(server, 40, logit_bias=bias, stop=[letter * 2])[1] == {**got, "text": letter * 40, "finish_reason": "length"}


def test_no_token_ends_an_answer_before_its_least_tokens(server):
    bias = {str(RED): 90, str(BLUE): 100}
    for least in (0, 3, 20):
        count, got = ends_after(server, least, logit_bias=bias, stop_token_ids=[BLUE])
        assert (count, got["text"], got["finish_reason"]) == (least, name(server, RED) * least, "stop")
        end = {"2": 100, str(RED): 90}
        count, got = ends_after(server, least, logit_bias=end, ignore_eos=False)
        assert (count, got["text"], got["finish_reason"]) == (least, name(server, RED) * least, "stop")


def test_an_answer_of_a_form_ends_where_the_form_does(server):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": [12]}}}
    reply = server.good(CHAT, {"messages": [{"role": "user", "content": "?"}], "max_tokens": 30, "min_tokens": 20, "response_format": form})
    choice = reply["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("12", "stop")
    assert reply["usage"]["completion_tokens"] < 20, "white space may follow, and nothing else"


def test_no_token_at_all_may_come(server):
    every = list(range(server.get("/v1/models")[1]["data"][0]["meta"]["n_vocab"]))
    for temperature in (0, 1):
        count, got = ends_after(server, 5, stop_token_ids=every, temperature=temperature, ignore_eos=False, seed=1)
        assert (count, got["text"], got["finish_reason"]) == (0, "", "stop")


FIELDS = {
    "temperature": 0.8,
    "top_p": 0.7,
    "top_k": 9,
    "min_p": 0.02,
    "repetition_penalty": 1.3,
    "presence_penalty": 1,
    "frequency_penalty": -1,
    "logit_bias": biased(RED, BLUE, by=3),
    "seed": 77,
    "n": 2,
    "stop": ["e", " t"],
    "stop_token_ids": [RED],
    "min_tokens": 4,
    "max_tokens": 9,
    "ignore_eos": False,
    "logprobs": 2,
}
NEUTRAL = {
    "top_p": 1,
    "top_k": -1,
    "min_p": 0,
    "repetition_penalty": 1,
    "presence_penalty": 0,
    "frequency_penalty": 0,
    "logit_bias": {},
    "n": 1,
    "best_of": 1,
    "stop": [],
    "stop_token_ids": [],
    "min_tokens": 0,
}


@pytest.mark.parametrize("one", FIELDS)
def test_pairs_of_fields_say_the_same_in_streams_and_again(server, one):
    for other in FIELDS:
        body = {**GREEDY, "seed": 5, one: FIELDS[one], other: FIELDS[other]}
        choices = server.good(COMPLETION, body)["choices"]
        assert server.good(COMPLETION, body)["choices"] == choices, other
        streamed = ["" for _ in choices]
        for part in itertools.chain.from_iterable(event["choices"] for event in server.stream(COMPLETION, body)):
            streamed[part["index"]] += part["text"]
        assert streamed == [part["text"] for part in choices], other


def test_neutral_values_change_nothing(server):
    for sampled in ({}, {"temperature": 1, "seed": 4, "top_p": 1, "top_k": 0, "min_p": 0}):
        assert choice(server, **{**NEUTRAL, **sampled}) == choice(server, **sampled)
