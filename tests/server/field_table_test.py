# SPDX-License-Identifier: Apache-2.0
"""The guide's tables of fields: each field has the described effect, and no field is missing in the guide or here."""

import concurrent.futures
import json
import math
import pathlib
import re
import tempfile
import time

import pytest
from service import Server, sentence, wait_for

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
GUIDE = pathlib.Path(__file__).resolve().parents[2] / "docs/guide/server.md"
MESSAGES = [{"role": "user", "content": "some words to read"}]
BODY = {CHAT: {"messages": MESSAGES, "max_tokens": 8, "ignore_eos": True}, COMPLETION: {"prompt": "some words to read", "max_tokens": 8, "ignore_eos": True}}
RED, BLUE = 100, 101  # letters: the tiny model has a token for each byte


def tables():
    """The first columns of the tables under `## Fields`: names, row by row."""
    chapter = re.search(r"^## Fields\n(.*?)^##", GUIDE.read_text(), re.MULTILINE | re.DOTALL)[1]
    out = [[]]
    for line in chapter.splitlines():
        if line.startswith("| `"):
            out[-1].append(re.findall(r"`([^`]+)`", line.split(" | ")[0]))
        elif out[-1]:
            out.append([])
    return [rows for rows in out if rows]


DO, NOTHING, REFUSED = ([name for row in rows for name in row] for rows in tables())


def choices(server, path=COMPLETION, **fields):
    return server.good(path, {**BODY[path], **fields})["choices"]


def text(server, **fields):
    return choices(server, **fields)[0]["text"]


def tokens(server, **fields):
    return choices(server, **fields, logprobs=0)[0]["logprobs"]["tokens"]


def name(server, token):
    return server.good("/detokenize", {"tokens": [token]})["content"]


def logprobs(server, prompt):
    """The model's log probabilities of first tokens, most probable first."""
    found = choices(server, prompt=prompt, max_tokens=1, logprobs=20)[0]["logprobs"]["top_logprobs"][0]
    return sorted(found.items(), key=lambda item: -item[1])


def only(server, *letters, **fields):
    """The tokens of an answer that can contain only these letters."""
    return tokens(server, logit_bias={str(letter): 100 for letter in letters}, **fields)


def check_messages(server):
    more = [*MESSAGES, {"role": "assistant", "content": "yes"}, {"role": "user", "content": "and?"}]
    assert server.good(CHAT, {**BODY[CHAT], "messages": more})["usage"]["prompt_tokens"] > server.good(CHAT, BODY[CHAT])["usage"]["prompt_tokens"]


CLOCK = {"type": "function", "function": {"name": "clock", "parameters": {"type": "object", "properties": {"place": {"enum": ["x", "y"]}}, "required": ["place"], "additionalProperties": False}}}


def check_tools(server):
    chosen = {"type": "function", "function": {"name": "clock"}}
    message = choices(server, CHAT, tools=[CLOCK], tool_choice=chosen, max_tokens=400, ignore_eos=False)[0]["message"]
    assert [call["function"]["name"] for call in message["tool_calls"]] == ["clock"]
    assert "tool_calls" not in choices(server, CHAT, tools=[CLOCK], tool_choice="none")[0]["message"]


def check_parallel_tool_calls(server):
    body = {"tools": [CLOCK], "tool_choice": "required", "parallel_tool_calls": False, "max_tokens": 400, "ignore_eos": False}
    assert len(choices(server, CHAT, **body)[0]["message"]["tool_calls"]) == 1


def check_chat_template_kwargs(server):
    status, reply = server.post(CHAT, {**BODY[CHAT], "chat_template_kwargs": {"enable_thinking": 5}})
    assert status == 400 and reply["error"]["param"] == "chat_template_kwargs.enable_thinking", reply
    source = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tone }}{{ '!' if enable_thinking else '?' }}"
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
        file.write(source)
        file.flush()
        with Server(server.model, "--chat-template", file.name) as other:
            assert rendered(other, chat_template_kwargs={"tone": " mild"}).endswith("yes mild!")
            assert rendered(other, chat_template_kwargs={"enable_thinking": False}).endswith("yes?")


def check_reasoning_format(server):
    for form in ("none", "auto", "deepseek"):
        assert choices(server, CHAT, reasoning_format=form) == choices(server, CHAT), "this template has no thinking"
    status, reply = server.post(CHAT, {**BODY[CHAT], "reasoning_format": "aloud"})
    assert status == 400 and reply["error"]["param"] == "reasoning_format", reply


def check_reasoning_effort(server):
    source = "{% for m in messages %}{{ m.content }}{% endfor %}{{ reasoning_effort }}{{ '!' if enable_thinking else '?' }}"
    with tempfile.NamedTemporaryFile("w", suffix=".jinja") as file:
        file.write(source)
        file.flush()
        with Server(server.model, "--chat-template", file.name) as other:
            assert rendered(other, reasoning_effort="high").endswith("yeshigh!") and rendered(other, reasoning_effort="none").endswith("yes?")


def check_thinking_token_budget(server, field="thinking_token_budget"):
    """thinking_test.py tests its effect; this template has no thinking."""
    for most in (-1, 0, 5):
        assert choices(server, CHAT, **{field: most}) == choices(server, CHAT)
    status, reply = server.post(CHAT, {**BODY[CHAT], field: -2})
    assert status == 400 and reply["error"]["param"] == field, reply


def check_thinking_budget_tokens(server):
    check_thinking_token_budget(server, "thinking_budget_tokens")


def check_reasoning_budget_tokens(server):
    check_thinking_token_budget(server, "reasoning_budget_tokens")


def rendered(server, **fields):
    return server.good("/apply-template", {"messages": [*MESSAGES, {"role": "assistant", "content": "yes"}], **fields})["prompt"]


def check_add_generation_prompt(server):
    assert rendered(server).startswith(rendered(server, add_generation_prompt=False)) and len(rendered(server)) > len(rendered(server, add_generation_prompt=False))
    unopened = server.good(CHAT, {**BODY[CHAT], "add_generation_prompt": False})["usage"]["prompt_tokens"]
    assert unopened < server.good(CHAT, BODY[CHAT])["usage"]["prompt_tokens"]


def check_continue_final_message(server):
    assert rendered(server, continue_final_message=True).endswith("yes")


def check_prompt(server):
    ids = server.good("/tokenize", {"content": "some words to read", "add_special_tokens": True})["tokens"]
    assert text(server, prompt=ids) == text(server)
    both = choices(server, prompt=["some words to read", "others"])
    assert [both[0]["text"], both[1]["text"]] == [text(server), text(server, prompt="others")]


def check_echo(server):
    assert text(server, prompt=[RED, BLUE, RED], echo=True) == name(server, RED) + name(server, BLUE) + name(server, RED) + text(server, prompt=[RED, BLUE, RED])


def check_stream(server):
    assert "".join(part["text"] for event in server.stream(COMPLETION, BODY[COMPLETION]) for part in event["choices"]) == text(server)


def check_stream_options(server):
    usage = server.good(COMPLETION, BODY[COMPLETION])["usage"]
    events = server.stream(COMPLETION, {**BODY[COMPLETION], "stream_options": {"include_usage": True, "include_obfuscation": False}})
    assert [event["usage"] for event in events if event.get("usage")] == [usage]
    events = server.stream(COMPLETION, {**BODY[COMPLETION], "stream_options": {"continuous_usage_stats": True}})
    assert all(event["usage"] for event in events if event["choices"])


def check_response_format(server):
    schema = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"enum": [123]}}}
    assert choices(server, CHAT, response_format=schema, ignore_eos=False, max_tokens=40)[0]["message"]["content"] == "123"


def bare_schema(server, **fields):
    """The answers of both routes to a request whose schema allows only one answer."""
    more = {"ignore_eos": False, "max_tokens": 40}
    return [choices(server, CHAT, **fields, **more)[0]["message"]["content"], choices(server, COMPLETION, **fields, **more)[0]["text"]]


def check_guided_json(server):
    assert bare_schema(server, guided_json={"enum": [123]}) == bare_schema(server, guided_json='{"enum": [123]}') == ["123", "123"]
    for wrong, part in (("{", "cannot be read"), (5, "not a JSON Schema")):
        status, reply = server.post(CHAT, {**BODY[CHAT], "guided_json": wrong})
        assert status == 400 and sentence(reply, part)["param"] == "guided_json", reply


def check_json_schema(server):
    assert bare_schema(server, json_schema={"enum": [123]}) == ["123", "123"]
    status, reply = server.post(COMPLETION, {**BODY[COMPLETION], "json_schema": {"enum": [1]}, "guided_json": {"enum": [1]}})
    assert status == 400 and sentence(reply, "guided_json", "json_schema", "give one"), reply


def check_structured_outputs(server):
    assert bare_schema(server, structured_outputs={"json": {"enum": [123]}}) == bare_schema(server, structured_outputs={"json": '{"enum": [123]}'}) == ["123", "123"]
    assert all(one.startswith("{") for one in bare_schema(server, structured_outputs={"json_object": True}))
    for name, value in (("regex", "x"), ("choice", ["x"]), ("grammar", "root ::= x"), ("structural_tag", "x")):
        status, reply = server.post(COMPLETION, {**BODY[COMPLETION], "structured_outputs": {name: value}})
        assert status == 501 and sentence(reply, "not implemented")["param"] == f"structured_outputs.{name}", reply


def check_max_tokens(server):
    assert [len(tokens(server, max_tokens=most)) for most in (1, 5)] == [1, 5] and text(server, max_tokens=0) == ""


def check_max_completion_tokens(server):
    assert len(tokens(server, max_completion_tokens=3, max_tokens=5, n_predict=7)) == 3


def check_n_predict(server):
    body = {"prompt": "x", "ignore_eos": True, "n_predict": 3}
    assert server.good(COMPLETION, body)["usage"]["completion_tokens"] == 3 and len(tokens(server, n_predict=3, max_tokens=5)) == 5
    fits = server.good(COMPLETION, {**body, "n_predict": -1, "max_tokens": None})
    assert fits["usage"]["total_tokens"] == 1200, "the server's context"


def check_min_tokens(server):
    letter = name(server, RED)
    assert len(only(server, RED, min_tokens=4, stop=[letter])) == 5 and len(only(server, RED, stop=[letter])) == 1
    assert len(only(server, RED, BLUE, min_tokens=4, stop_token_ids=[RED, BLUE], max_tokens=9)) == 4


def check_stop(server):
    letter = name(server, RED)
    bias = {"logit_bias": {str(RED): 100}, "max_tokens": 9}
    assert text(server, **bias, stop=letter * 3) == "" and text(server, **bias, stop=["none", letter * 2]) == "" and text(server, **bias, stop="none") == letter * 9
    whole = text(server)
    letter = next(letter for letter in whole[1:] if letter.isascii())
    assert text(server, stop=letter) == whole[: whole.index(letter)]


def check_stop_token_ids(server):
    last = choices(server, max_tokens=9, logit_bias={str(RED): 100}, stop_token_ids=[RED])[0]
    assert (last["text"], last["finish_reason"]) == ("", "stop")


def check_ignore_eos(server):
    end = {"logit_bias": {"2": 100}}
    assert choices(server, **end, ignore_eos=False)[0]["finish_reason"] == "stop" and len(tokens(server, **end)) == 8


def check_logit_bias(server):
    best, second = logprobs(server, "x")[:2]
    ids = {server.good("/detokenize", {"tokens": [token]})["content"]: token for token in range(3, 288)}
    gap = best[1] - second[1]
    for bias, expected in ((gap + 0.01, second[0]), (gap - 0.01, best[0])):
        assert tokens(server, prompt="x", max_tokens=1, logit_bias={str(ids[second[0]]): bias}) == [expected]


def check_repetition_penalty(server, field="repetition_penalty"):
    bias = {str(RED): 100, str(BLUE): 70}
    for prompt, expected in (([5], RED), ([5, RED], BLUE)):
        assert tokens(server, prompt=prompt, max_tokens=1, logit_bias=bias, **{field: 2}) == [name(server, expected)]


def check_repeat_penalty(server):
    check_repetition_penalty(server, "repeat_penalty")


def check_frequency_penalty(server):
    got = only(server, RED, BLUE, frequency_penalty=2, max_tokens=200)
    counts = [got.count(name(server, letter)) for letter in (RED, BLUE)]
    assert abs(counts[0] - counts[1]) <= 11, "2 each time, and their logits differ by less than 20"


def check_presence_penalty(server):
    first, second = (only(server, RED, BLUE, max_tokens=1, **more)[0] for more in ({}, {"presence_penalty": -2}))
    assert first == second, "nothing has come yet"
    got = only(server, RED, BLUE, presence_penalty=2, max_tokens=60)
    assert {*got} <= {name(server, RED), name(server, BLUE)}


def frequencies(server, count=128, **fields):
    """The frequency of each first token among `count` answers."""
    got = [one["logprobs"]["tokens"][0] for one in choices(server, prompt="x", max_tokens=1, n=count, seed=1, logprobs=0, **{"temperature": 1, "top_k": 0, "top_p": 1, "min_p": 0, **fields})]
    return {letter: got.count(letter) / count for letter in set(got)}


def probabilities(server, temperature=1):
    """The probabilities of the 20 best first tokens, from the model's log probabilities."""
    found = [(letter, value / temperature) for letter, value in logprobs(server, "x")]
    total = sum(math.exp(value) for _, value in found)
    return [(letter, math.exp(value) / (total if temperature != 1 else 1)) for letter, value in found]


def check_temperature(server):
    best = logprobs(server, "x")[0][0]
    assert frequencies(server, temperature=0) == {best: 1} == frequencies(server, temperature=9e-6)
    sharp, flat = frequencies(server, temperature=0.2).get(best, 0), frequencies(server, temperature=5).get(best, 0)
    expected = probabilities(server, 0.2)[0][1]
    assert sharp > flat and abs(sharp - expected) < 0.2, (sharp, expected)


def check_top_k(server):
    assert set(frequencies(server, temperature=9, top_k=2)) == {letter for letter, _ in logprobs(server, "x")[:2]}
    assert len(frequencies(server, temperature=9, top_k=-1)) > 20


def check_top_p(server):
    known = probabilities(server)
    most, some = 0, []
    while most <= 0.3:
        some.append(known[len(some)][0])
        most += known[len(some) - 1][1]
    assert set(frequencies(server, top_p=0.3)) <= set(some) and frequencies(server, top_p=0) == {known[0][0]: 1}


def check_min_p(server):
    known = probabilities(server)
    allowed = {letter for letter, share in known if share >= 0.5 * known[0][1]}
    assert set(frequencies(server, min_p=0.5)) <= allowed and frequencies(server, min_p=1) == {known[0][0]: 1}


def check_seed(server):
    hot = {"temperature": 2, "top_k": 0, "top_p": 1, "min_p": 0}
    assert text(server, **hot, seed=5) == text(server, **hot, seed=5) != text(server, **hot, seed=6)
    assert len({text(server, **hot, seed=seed) for seed in (-1, -1, None, None)}) > 1


def check_n(server):
    hot = {"temperature": 2, "top_k": 0, "top_p": 1, "min_p": 0}
    assert [one["text"] for one in choices(server, **hot, seed=5, n=3)] == [text(server, **hot, seed=5 + i) for i in range(3)]


def check_logprobs(server):
    told = choices(server, logprobs=2)[0]["logprobs"]
    assert all(len(top) >= 2 and value == max(top.values()) <= 0 for top, value in zip(told["top_logprobs"], told["token_logprobs"]))
    assert choices(server, CHAT)[0]["logprobs"] is None and len(choices(server, CHAT, logprobs=True)[0]["logprobs"]["content"]) == 8


def check_top_logprobs(server):
    told = choices(server, CHAT, logprobs=True, top_logprobs=3)[0]["logprobs"]["content"]
    assert all(len(one["top_logprobs"]) == 3 and one["top_logprobs"][0]["token"] == one["token"] for one in told)


def check_priority(server):
    """As in vLLM, lower numbers begin first: the request with the highest number is last although it waits longest."""
    asked = {}
    with Server(server.model, "--context", "100000", "--parallel", "1") as one, one.begin_post(COMPLETION, {**BODY[COMPLETION], "max_tokens": 90_000, "stream": True}) as first:
        assert first.recv(12).startswith(b"HTTP/1.1 200")
        with concurrent.futures.ThreadPoolExecutor(3) as clients:
            for waiting, priority in enumerate((2, 0, -1)):
                asked[priority] = clients.submit(one.good, COMPLETION, {**BODY[COMPLETION], "priority": priority})
                wait_for(lambda waiting=waiting: len(one.get("/slots")[1]) == 2 + waiting)
            first.close()
        said = one.end()[1]  # a line for each request, in the order in which they ended
    assert sorted(asked, key=lambda priority: said.index(asked[priority].result()["id"])) == [-1, 0, 2]


def kept_text(question):
    return {"messages": [{"role": "user", "content": [{"type": "text", "text": "words " * 40}, {"type": "text", "text": question}]}], "max_tokens": 1, "winnow": {"protocol": "question-agnostic"}}


def check_cache_salt(server):
    salt = f"salt {time.monotonic_ns()}"
    cached = [server.good(CHAT, {**kept_text(question), "cache_salt": other})["usage"]["prompt_tokens_details"]["cached_tokens"] for question, other in (("who?", salt), ("why?", salt), ("when?", salt + "x"))]
    assert cached[0] == cached[2] == 0 < cached[1]


def check_cache_prompt(server):
    body = {**kept_text("who?"), "cache_salt": f"salt {time.monotonic_ns()}"}
    caching = (False, True, False, True)
    cached = [server.good(CHAT, {**body, "cache_prompt": caches})["usage"]["prompt_tokens_details"]["cached_tokens"] for caches in caching]
    assert cached[:3] == [0, 0, 0] and cached[3] > 0, "a prompt that is not to be cached is neither stored nor found"


def check_winnow(server):
    reply = server.good(COMPLETION, {**BODY[COMPLETION], "prompt": "words " * 40, "winnow": {"kv": "snapkv:window=8", "budget": 20}})
    assert (reply["winnow"]["spec"], reply["winnow"]["entries_per_head"]) == ("snapkv:window=8", 20)


check_tool_choice = check_tools


@pytest.fixture(scope="module")
def server(model):
    with Server(model, "--context", "1200") as one:
        one.model = model
        yield one
        one.wait_until_idle()


@pytest.mark.parametrize("field", DO)
def test_a_field_does_what_the_table_says(server, field):
    globals()[f"check_{field}"](server)
    assert f"the field {field} of requests" not in server.said()


WITHOUT_EFFECT = {
    "model": "another",
    "user": "me",
    "safety_identifier": "me",
    "metadata": {"a": "b"},
    "store": True,
    "service_tier": "flex",
    "prompt_cache_key": "key",
    "prompt_cache_retention": "24h",
    "prediction": {"type": "content", "content": "words"},
    "verbosity": "low",
    "length_penalty": 2,
    "spaces_between_special_tokens": False,
}


@pytest.mark.parametrize("field", NOTHING)
def test_a_field_without_effect_changes_nothing(server, field):
    for path in (CHAT, COMPLETION):
        for sampled in ({}, {"temperature": 1, "seed": 3}):
            assert choices(server, path, **sampled, **{field: WITHOUT_EFFECT[field]}) == choices(server, path, **sampled)
    assert f"the field {field} of requests" not in server.said()


# Fields of features that winnow lacks: values that request the feature, and neutral values.
NOT_THERE = {
    "best_of": ([2], [1]),
    "use_beam_search": ([True], [False]),
    "include_stop_str_in_output": ([True], [False]),
    "return_token_ids": ([True], [False]),
    "return_tokens_as_token_ids": ([True], [False]),
    "post_sampling_probs": ([True], [False]),
    "skip_special_tokens": ([False], [True]),
    "bad_words": ([["x"]], [[]]),
    "allowed_token_ids": ([[5]], [[]]),
    "documents": ([[{"text": "x"}]], [[]]),
    "typical_p": ([0.5], [1, 1.0]),
    "xtc_probability": ([0.1], [0]),
    "dry_multiplier": ([0.8], [0]),
    "mirostat": ([1, 2], [0]),
    "dynatemp_range": ([0.5], [0]),
    "top_n_sigma": ([1], [0, -1]),
    "modalities": ([["text", "audio"]], [["text"]]),
    "audio": ([{"voice": "alloy"}], []),
    "web_search_options": ([{}], []),
    "guided_regex": (["x"], []),
    "guided_choice": ([["x"]], []),
    "guided_grammar": (["root ::= x"], []),
    "grammar": (["root ::= x"], []),
    "chat_template": (["x"], []),
    "prompt_logprobs": ([0, 3], []),
    "truncate_prompt_tokens": ([5, -1], []),
    "suffix": (["x"], []),
    "functions": ([[{"name": "f"}]], [[]]),
    "function_call": ([{"name": "f"}], ["none", "auto"]),
}
OF_ONE = {"suffix": [COMPLETION], "functions": [CHAT], "function_call": [CHAT]}


@pytest.mark.parametrize("field", REFUSED)
def test_what_is_not_there_is_refused_and_its_neutral_value_is_not(server, field):
    asks, neutral = NOT_THERE[field]
    for path in OF_ONE.get(field, [CHAT, COMPLETION]):
        for value in asks:
            status, reply = server.post(path, {**BODY[path], field: value})
            error = sentence(reply, field, "not implemented")
            assert status == 501 and error["param"].startswith(field), (value, reply)
        for value in [*neutral, None]:
            assert choices(server, path, **{field: value}) == choices(server, path), value
    assert f"the field {field} of requests" not in server.said()


def test_each_field_of_the_tables_has_a_case_and_the_other_way_round():
    assert {*WITHOUT_EFFECT} == {*NOTHING} and {*NOT_THERE} == {*REFUSED}
    assert {name.removeprefix("check_") for name in globals() if name.startswith("check_")} == {*DO}
    fields = [*DO, *NOTHING, *REFUSED]
    assert len(fields) == len({*fields}), "each has one row"


# Fields in OpenAI's reference for the two routes.
OPENAI = """audio best_of echo frequency_penalty function_call functions logit_bias logprobs max_completion_tokens max_tokens messages metadata
modalities model n parallel_tool_calls prediction presence_penalty prompt prompt_cache_key prompt_cache_retention reasoning_effort response_format safety_identifier seed
service_tier stop store stream stream_options suffix temperature tool_choice tools top_logprobs top_p user verbosity web_search_options""".split()
# Fields that vLLM adds.
VLLM = """allowed_token_ids bad_words ignore_eos include_stop_str_in_output length_penalty min_p min_tokens priority prompt_logprobs repetition_penalty skip_special_tokens
spaces_between_special_tokens stop_token_ids top_k truncate_prompt_tokens use_beam_search cache_salt add_generation_prompt continue_final_message structured_outputs""".split()


@pytest.mark.parametrize("field", sorted({*OPENAI, *VLLM}))
def test_the_tables_have_the_fields_of_openai_and_vllm(field):
    assert field in {*DO, *NOTHING, *REFUSED}


@pytest.mark.parametrize("field", [*WITHOUT_EFFECT, *NOT_THERE])
def test_other_types_are_refused(server, field):
    """Even of fields without effect, so that no mistake is hidden."""
    if field in ("guided_regex", "guided_choice", "guided_grammar", "grammar", "chat_template", "prompt_logprobs", "truncate_prompt_tokens", "audio", "web_search_options"):
        return  # any value is refused
    path = OF_ONE.get(field, [CHAT])[0]
    good = json.dumps(WITHOUT_EFFECT.get(field, NOT_THERE.get(field, ([], []))[0][:1]))
    wrong = 5 if '"' in good or "true" in good or "false" in good or "[[" in good else "x"
    status, reply = server.post(path, {**BODY[path], field: wrong})
    assert status == 400 and sentence(reply, field)["param"].startswith(field), (wrong, reply)
