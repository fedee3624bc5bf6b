# SPDX-License-Identifier: Apache-2.0
"""Answers equal those of `winnow run`, whichever route is used and whatever else runs."""

import json
import math
import re
import subprocess
import threading

import pytest
from program import PATIENCE, WINNOW
from service import Server

CHAT, COMPLETION = "/v1/chat/completions", "/v1/completions"
TEXT = "some words to read, and then some more of them " * 4
SNAPKV = {"kv": "snapkv:window=8", "budget": 40}
METHODS = [
    {},
    SNAPKV,
    {"kv": "streaming-llm", "budget": "30%"},
    {"kv": "h2o", "budget": "50"},
    {"kv": "ada-snapkv:window=8", "budget": "40", "kv_type": "q8_0"},
]


def run(model, *arguments, **keeping):
    """The record of `winnow run --json` with the same options."""
    names = {"kv": "--kv", "budget": "--budget", "kv_type": "--kv-type", "protocol": "--protocol"}
    options = [word for name, value in keeping.items() for word in (names[name], str(value))]
    command = [WINNOW, "run", "-m", model, "--json", "--threads", "1", "--ignore-eos", *options, *arguments]
    result = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def text(work):
    with open(f"{work}/text.txt", "w") as file:
        file.write(TEXT)
    return f"{work}/text.txt"


def completion(tokens=20, **fields):
    return {"prompt": TEXT, "max_tokens": tokens, "ignore_eos": True, **fields}


def chat(*parts, tokens=20, **fields):
    content = parts[0] if len(parts) == 1 else [{"type": "text", "text": part} for part in parts]
    return {"messages": [{"role": "user", "content": content}], "max_tokens": tokens, "ignore_eos": True, **fields}


def text_of(events):
    """The content of a stream's chunks, by choice."""
    out = {}
    for event in events:
        for choice in event["choices"]:
            piece = choice["text"] if "text" in choice else choice["delta"].get("content", "")
            out[choice["index"]] = out.get(choice["index"], "") + piece
    return out


def check_keeping(reply, record):
    told = reply["winnow"]
    assert told["spec"] == record["spec"] and told["budget"] == record["budget"]
    for name in ("bytes_held", "bytes_full"):
        assert told[name] == record["cache"][name]
    assert told["entries_per_head"] == record["cache"]["entries_per_head_mean"]
    assert reply["usage"]["prompt_tokens"] == record["tokens"]["prompt"]
    assert reply["usage"]["completion_tokens"] == record["tokens"]["generated"]
    assert reply["usage"]["total_tokens"] == record["tokens"]["prompt"] + record["tokens"]["generated"]


@pytest.mark.parametrize("keeping", METHODS)
def test_a_completion_is_that_of_run(server, model, text, keeping):
    record = run(model, "--raw", "-f", text, "-n", "20", **keeping)
    reply = server.good(COMPLETION, completion(winnow=keeping))
    assert reply["choices"][0]["text"] == record["answer"] and reply["choices"][0]["finish_reason"] == record["finish_reason"]
    assert reply["object"] == "text_completion"
    check_keeping(reply, record)


@pytest.mark.parametrize("protocol", ["question-aware", "question-agnostic"])
@pytest.mark.parametrize("keeping", METHODS)
def test_a_chat_about_a_text_is_that_of_run(server, model, text, keeping, protocol):
    """A message of two parts is a text and a question with a blank line in between."""
    record = run(model, "-f", text, "-p", "and?", "-n", "20", protocol=protocol, **keeping)
    reply = server.good(CHAT, chat(TEXT + "\n", "and?", winnow={**keeping, "protocol": protocol}))
    assert reply["choices"][0]["message"] == {"role": "assistant", "content": record["answer"]}
    assert reply["object"] == "chat.completion"
    check_keeping(reply, record)


def test_a_system_message_is_that_of_run(server, model):
    record = run(model, "-p", "and?", "--system", "Be brief.", "-n", "20")
    for role in ("system", "developer"):
        body = chat("and?")
        body["messages"].insert(0, {"role": role, "content": "Be brief."})
        assert server.good(CHAT, body)["choices"][0]["message"]["content"] == record["answer"]


def test_what_comes_before_the_last_question_is_compressed_in_stages(server):
    """The opening of the first message is shorter than the budget; the part from there to the last message is a
    separate stage."""
    messages = [{"role": "user", "content": TEXT}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "and?"}]
    body = {"messages": messages, "max_tokens": 1, "ignore_eos": True, "winnow": {**SNAPKV, "protocol": "question-agnostic"}}
    told = server.good(CHAT, body)["winnow"]
    head = server.good("/tokenize", {"messages": messages[:2], "add_generation_prompt": False})["count"]
    opening = server.good("/tokenize", {"messages": [{"role": "user", "content": ""}], "continue_final_message": True})["count"]
    assert 0 < opening < 40 and told["entries_per_head"] == opening + 40 and head > 100
    per_token = server.good(COMPLETION, completion())["winnow"]["bytes_full"] / server.good("/tokenize", {"prompt": TEXT})["count"]
    assert abs(told["bytes_full"] / per_token - head) < 30, "the last message's opening is part of what comes before it"


@pytest.mark.parametrize("protocol", ["question-aware", "question-agnostic"])
def test_a_share_of_a_short_prompt_is_raised_to_what_the_method_needs(server, protocol):
    """With a share as its budget, a server answers even "Hello"; a number of entries that is too small is refused."""
    body = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 3, "ignore_eos": True}
    told = server.good(CHAT, {**body, "winnow": {"kv": "snapkv:window=8", "budget": "1%", "protocol": protocol}})["winnow"]
    assert told["budget"] == "1%" and told["entries_per_head"] >= 8
    status, reply = server.post(CHAT, {**body, "winnow": {"kv": "snapkv:window=8", "budget": 1}})
    assert status == 400 and "budget of 1 entries" in reply["error"]["message"]


def test_requests_with_different_methods_at_once(server, model, text):
    records = [run(model, "--raw", "-f", text, "-n", "60", **keeping) for keeping in METHODS]
    replies = [None] * 4 * len(METHODS)

    def ask(i):
        body = completion(60, winnow=METHODS[i % len(METHODS)])
        replies[i] = text_of(server.stream(COMPLETION, body))[0] if i % 2 else server.good(COMPLETION, body)["choices"][0]["text"]

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(replies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert replies == [record["answer"] for record in records] * 4


@pytest.mark.parametrize("more", [{}, {"n": 3, "temperature": 1, "seed": 5}, {"stop": ["e"]}, {"logprobs": 2}, {"temperature": 1, "seed": 1, "stop": "a", "logprobs": 0}])
def test_a_stream_is_the_whole_in_pieces(server, more):
    body = completion(60, **more)
    whole, events = server.good(COMPLETION, body), server.stream(COMPLETION, body)
    assert text_of(events) == {choice["index"]: choice["text"] for choice in whole["choices"]}
    ends = {choice["index"]: choice["finish_reason"] for event in events for choice in event["choices"] if choice["finish_reason"]}
    assert ends == {choice["index"]: choice["finish_reason"] for choice in whole["choices"]}
    assert events[-1]["winnow"] == whole["winnow"] and events[-1]["timings"].keys() == whole["timings"].keys()
    assert len({event["id"] for event in events}) == 1
    for choice in whole["choices"]:
        if "logprobs" in more:
            pieces = [c["logprobs"] for e in events for c in e["choices"] if c["logprobs"]]
            assert {name: sum((piece[name] for piece in pieces), []) for name in choice["logprobs"]} == choice["logprobs"]


def test_a_chat_stream_has_its_parts_in_order(server):
    body = chat("and?", stream_options={"include_usage": True})
    whole, events = server.good(CHAT, body | {"stream_options": None}), server.stream(CHAT, body)
    assert events[0]["choices"][0]["delta"] == {"role": "assistant", "content": ""}
    assert all("content" in event["choices"][0]["delta"] and event["usage"] is None for event in events[1:-2])
    assert events[-2]["choices"][0] == {"index": 0, "delta": {}, "logprobs": None, "finish_reason": "length"}
    assert events[-1]["choices"] == [] and events[-1]["usage"] == whole["usage"]
    assert text_of(events)[0] == whole["choices"][0]["message"]["content"]


def test_usage_in_every_chunk(server):
    events = server.stream(COMPLETION, completion(10, stream_options={"include_usage": True, "continuous_usage_stats": True}))
    counts = [event["usage"]["completion_tokens"] for event in events]
    assert counts == sorted(counts) and counts[-1] == 10


@pytest.mark.parametrize("alternatives", [0, 3])
def test_log_probabilities_are_those_of_run(server, model, text, alternatives):
    record = run(model, "--raw", "-f", text, "-n", "20", "--logprobs", "3")["logprobs"]
    reply = server.good(COMPLETION, completion(logprobs=alternatives))["choices"][0]
    older = reply["logprobs"]
    assert older["token_logprobs"] == [token["logprob"] for token in record]
    assert [sorted(top.values()) for top in older["top_logprobs"]] == [sorted(t["logprob"] for t in token["top"][:alternatives]) for token in record]
    assert older["text_offset"][0] == 0 and older["text_offset"] == sorted(older["text_offset"])
    messages = [{"role": "user", "content": "and?"}]
    content = server.good(CHAT, {"messages": messages, "max_tokens": 9, "logprobs": True, "top_logprobs": alternatives, "ignore_eos": True})["choices"][0]
    for token in content["logprobs"]["content"]:
        assert len(token["top_logprobs"]) == alternatives
        if alternatives:
            assert token["logprob"] == token["top_logprobs"][0]["logprob"], "greedy"
    spoken = bytes(byte for token in content["logprobs"]["content"] for byte in token["bytes"])
    assert spoken.decode(errors="replace") == content["message"]["content"]


def test_the_parts_of_probability_sum_up_to_less_than_one(server):
    for top in server.good(COMPLETION, completion(logprobs=20))["choices"][0]["logprobs"]["top_logprobs"]:
        assert len(top) == 20 and 0 < sum(math.exp(value) for value in top.values()) <= 1


def test_several_answers_differ_by_their_seeds(server, model, text):
    three = server.good(COMPLETION, completion(n=3, temperature=1, seed=7))
    alone = [run(model, "--raw", "-f", text, "-n", "20", "--temp", "1", "--seed", str(seed))["answer"] for seed in (7, 8, 9)]
    assert [choice["text"] for choice in three["choices"]] == alone and len(set(alone)) == 3
    assert three["usage"]["completion_tokens"] == 60


def test_without_a_seed_each_request_has_another_one(server):
    texts = {server.good(COMPLETION, completion(40, temperature=1))["choices"][0]["text"] for _ in range(4)}
    assert len(texts) > 1


def test_several_prompts_are_answered_in_order(server):
    prompts = ["one", "another text", "the third"]
    alone = [server.good(COMPLETION, completion(prompt=prompt, temperature=1, seed=1, n=2)) for prompt in prompts]
    together = server.good(COMPLETION, completion(prompt=prompts, temperature=1, seed=1, n=2))
    assert [choice["text"] for choice in together["choices"]] == [choice["text"] for reply in alone for choice in reply["choices"]]
    assert [choice["index"] for choice in together["choices"]] == list(range(6))
    for count in ("prompt_tokens", "completion_tokens"):
        assert together["usage"][count] == sum(reply["usage"][count] for reply in alone)
    streamed = text_of(server.stream(COMPLETION, completion(prompt=prompts, temperature=1, seed=1, n=2)))
    assert [streamed[i] for i in range(6)] == [choice["text"] for choice in together["choices"]]


def test_prompts_of_tokens(server):
    tokens = server.good("/tokenize", {"prompt": TEXT})["tokens"]
    expected = server.good(COMPLETION, completion())["choices"][0]["text"]
    assert server.good(COMPLETION, completion(prompt=tokens))["choices"][0]["text"] == expected
    both = server.good(COMPLETION, completion(prompt=[tokens, tokens[:20]]))
    assert both["choices"][0]["text"] == expected and both["usage"]["prompt_tokens"] == len(tokens) + 20


def test_stops(server):
    whole = server.good(COMPLETION, completion(60, logprobs=0))["choices"][0]
    stop = re.search("[!-~]{2}", whole["text"][10:])[0]
    cut = server.good(COMPLETION, completion(60, stop=[stop, "not there at all"]))["choices"][0]
    assert cut["text"] == whole["text"][: whole["text"].index(stop)] and cut["finish_reason"] == "stop"
    names = whole["logprobs"]["tokens"]
    token = server.good("/tokenize", {"prompt": names[5], "add_special_tokens": False})["tokens"][-1]
    if names.count(names[5]) == 1 and not names[5].startswith("bytes:"):
        ended = server.good(COMPLETION, completion(60, stop_token_ids=[token]))
        assert ended["usage"]["completion_tokens"] in (5, 6) and ended["choices"][0]["finish_reason"] == "stop"


def test_biases_rule(server):
    reply = server.good(COMPLETION, completion(5, logit_bias={"100": 100}))
    assert reply["choices"][0]["text"] == server.good("/detokenize", {"tokens": [100] * 5})["content"]


def test_penalties_change_what_repeats(server):
    biased = completion(8, logit_bias={"100": 50})
    assert len(set(server.good(COMPLETION, biased)["choices"][0]["text"])) == 1
    for penalty in ("presence_penalty", "frequency_penalty"):
        assert server.good(COMPLETION, {**completion(60), penalty: 2})["choices"] != server.good(COMPLETION, completion(60))["choices"]


def test_an_end_is_ignored_or_waited_for(server):
    end = {"logit_bias": {"2": 100}}
    short = {"prompt": TEXT, "max_tokens": 10, **end}
    assert server.good(COMPLETION, short)["usage"]["completion_tokens"] == 0
    assert server.good(COMPLETION, {**short, "min_tokens": 4})["usage"]["completion_tokens"] == 4
    assert server.good(COMPLETION, {**short, "ignore_eos": True})["usage"]["completion_tokens"] == 10


def test_no_tokens_at_all(server):
    reply = server.good(COMPLETION, completion(0))
    assert reply["choices"][0]["text"] == "" and reply["usage"]["completion_tokens"] == 0 and reply["choices"][0]["finish_reason"] == "length"
    assert text_of(server.stream(COMPLETION, completion(0))) == {0: ""}


def test_routes_without_v1_are_the_same(server):
    assert server.good("/completions", completion())["choices"] == server.good(COMPLETION, completion())["choices"]
    assert server.good("/chat/completions", chat("and?"))["choices"] == server.good(CHAT, chat("and?"))["choices"]


def test_defaults_are_the_servers_options(model):
    options = ["--kv", "snapkv:window=8", "--budget", "40", "-n", "7", "--ignore-eos", "--temp", "1", "--seed", "3", "--kv-type", "f32", "--context", "1000"]
    with Server(model, *options) as one:
        plain = {"prompt": TEXT}
        reply = one.good(COMPLETION, plain)
        assert reply["usage"]["completion_tokens"] == 7 and reply["winnow"]["spec"] == "snapkv:window=8" and reply["winnow"]["entries_per_head"] == 40
        assert one.good(COMPLETION, plain)["choices"] == reply["choices"], "the server's seed"
        assert one.good(COMPLETION, {**plain, "winnow": {"kv": "full"}})["winnow"]["spec"] == "full"
        narrow = one.good(COMPLETION, {**plain, "winnow": {"kv_type": "f16"}})["winnow"]
        assert narrow["bytes_held"] < reply["winnow"]["bytes_held"] and narrow["entries_per_head"] == 40


@pytest.mark.parametrize("keeping", METHODS[1:])
def test_a_text_that_is_kept_gives_the_same_answers(work, model, keeping):
    asked = [chat(TEXT, question, winnow={**keeping, "protocol": "question-agnostic"}) for question in ("who?", "why?", "who?")]
    with Server(model, "--context", "1000", "--prefix-memory", "0") as server:
        read = [server.good(CHAT, one) for one in asked]
    assert [cached_tokens(reply) for reply in read] == [0, 0, 0]
    with Server(model, "--context", "1000", "--api-key", "mine", "--api-key", "yours") as server:
        mine = {"Authorization": "Bearer mine"}
        found = [server.good(CHAT, one, **mine) for one in asked]
        before = cached_tokens(found[1])
        assert [cached_tokens(reply) for reply in found] == [0, before, before] and before > 20
        assert [r["choices"] for r in found] == [r["choices"] for r in read]
        assert [r["winnow"] for r in found] == [r["winnow"] for r in read]
        assert cached_tokens(server.good(CHAT, asked[0], Authorization="Bearer yours")) == 0, "keys share nothing"
        salted = {**asked[0], "cache_salt": "ours"}
        assert [cached_tokens(server.good(CHAT, salted, **who)) for who in (mine, {"X_Api_Key": "yours"})] == [0, before]


@pytest.mark.parametrize("keeping", METHODS)
def test_a_prompt_that_was_read_is_not_read_again(model, keeping):
    """What follows a known text is chosen with all of the prompt seen, and keys separate."""
    prompts = [completion(prompt=TEXT + more, winnow=keeping) for more in ("", "and then what?", "")]
    asked = [*[(COMPLETION, prompt) for prompt in prompts], *[(CHAT, chat(TEXT, question, winnow=keeping)) for question in ("who?", "why?")]]
    with Server(model, "--context", "1000", "--prefix-memory", "0") as server:
        read = [server.good(*one) for one in asked]
    assert [cached_tokens(reply) for reply in read] == [0] * 5
    with Server(model, "--context", "1000", "--api-key", "mine", "--api-key", "yours") as server:
        mine, yours = {"Authorization": "Bearer mine"}, {"X_Api_Key": "yours"}
        found = [server.good(*one, **mine) for one in asked]
        assert [r["choices"] for r in found] == [r["choices"] for r in read]
        assert [r["winnow"] for r in found] == [r["winnow"] for r in read]
        cached = [cached_tokens(reply) for reply in found]
        assert cached[0] == cached[3] == 0 and all(tokens % 64 == 0 for tokens in cached)
        if keeping.get("kv") != "h2o":  # may read its text anew
            assert min(cached[1], cached[2], cached[4]) >= 128
        path, body = asked[1]
        assert cached_tokens(server.good(path, body, **yours)) == 0, "keys share nothing"
        assert cached_tokens(server.good(path, {**body, "cache_salt": "ours"}, **mine)) == 0, "nor does a salt with a key"
        assert cached_tokens(server.good(path, {**body, "cache_salt": "ours"}, **yours)) == cached[1], "whoever names the salt shares"


def test_the_servers_budget_is_not_one_of_a_method_without(model):
    with Server(model, "--kv", "snapkv:window=8", "--budget", "40", "--context", "1000") as server:
        told = [server.good(COMPLETION, completion(winnow=winnow))["winnow"] for winnow in ({"kv": "full"}, {"kv": "tova"})]
    assert [(w["spec"], w["budget"]) for w in told] == [("full", None), ("tova", "40")]


def test_texts_need_less_memory_than_there_is(model):
    result = subprocess.run([WINNOW, "serve", "-m", model, "--port", "0", "--memory", "4MiB", "--prefix-memory", "4MiB"],
                            capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 2 and "--prefix-memory 4.0 MiB leaves nothing of --memory 4.0 MiB" in result.stderr


@pytest.mark.parametrize("keeping", [{}, SNAPKV])
def test_an_echoed_prompt_has_the_probabilities_of_its_tokens(model, keeping):
    """Each log probability equals that of the token after all tokens before it, read as a separate prompt."""
    with Server(model, "--context", "1000", "--precision", "f32", "--kv-type", "f32") as server:
        whole = server.good("/tokenize", {"content": TEXT})["tokens"]
        reply = server.good(COMPLETION, {"prompt": whole, "max_tokens": 1, "ignore_eos": True, "echo": True, "logprobs": 2, "winnow": keeping})["choices"][0]
        told = reply["logprobs"]
        assert len(told["tokens"]) == len(whole) + 1 and told["token_logprobs"][0] is None and told["top_logprobs"][0] is None
        for i in (1, 2, 50, 64, 65, len(whole) - 1):
            forced = {"prompt": whole[:i], "max_tokens": 1, "ignore_eos": True, "logprobs": 2, "logit_bias": {str(whole[i]): 100}}
            alone = server.good(COMPLETION, forced)["choices"][0]["logprobs"]
            assert told["tokens"][i] == alone["tokens"][0]
            assert math.isclose(told["token_logprobs"][i], alone["token_logprobs"][0], abs_tol=1e-3), i
            assert told["top_logprobs"][i].keys() == alone["top_logprobs"][0].keys(), i
        assert told["text_offset"] == sorted(told["text_offset"]) and TEXT in reply["text"].replace("▁", " "), "the tiny model shows spaces so"
        nothing = server.good(COMPLETION, {"prompt": whole, "max_tokens": 0, "echo": True})["choices"][0]
        assert nothing["logprobs"] is None and reply["text"].startswith(nothing["text"]) and nothing["finish_reason"] == "length"
        assert server.post(COMPLETION, {"prompt": "x", "echo": True, "stream": True})[0] == 501


def cached_tokens(reply):
    return reply["usage"]["prompt_tokens_details"]["cached_tokens"]
