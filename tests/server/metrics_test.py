# SPDX-License-Identifier: Apache-2.0
"""/metrics, parsed by Prometheus' own tools, compared with the requests made."""

import shutil
import subprocess

import pytest
from service import Server, wait_for

COMPLETION = "/v1/completions"
LONG = {"prompt": "hello", "max_tokens": 90_000, "ignore_eos": True, "stream": True}
HISTOGRAMS = (
    "time_to_first_token_seconds", "inter_token_latency_seconds", "e2e_request_latency_seconds", "request_queue_time_seconds",
    "request_prefill_time_seconds", "request_decode_time_seconds", "request_prompt_tokens", "request_generation_tokens",
)  # fmt: skip


@pytest.fixture(scope="module")
def server(model):
    with Server(model, "--context", "100000", "--parallel", "2", "--max-queue-requests", "1", "--memory", "1GiB", "--prefix-memory", "64MiB") as one:
        yield one


def exposition(server):
    status, headers, text = server.ask("GET", "/metrics")
    assert status == 200 and headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    return text.decode()


def families(server):
    parser = pytest.importorskip("prometheus_client.parser")
    return {family.name: family for family in parser.text_string_to_metric_families(exposition(server))}


def values(server):
    """All samples, by name and labels (without the model's)."""
    out = {}
    for family in families(server).values():
        for sample in family.samples:
            labels = dict(sample.labels)
            assert labels.pop("model_name") == "tiny"
            out[sample.name.removeprefix("vllm:"), *labels.values()] = sample.value
    return out


def changes(server, work):
    before = values(server)
    result = work()
    server.wait_until_idle()
    after = values(server)
    return result, {name: value - before.get(name, 0) for name, value in after.items() if value != before.get(name, 0)}


def start(server, body):
    client = server.begin_post(COMPLETION, body)
    assert client.recv(12) == b"HTTP/1.1 200"
    return client


def test_all_of_vllms_names_are_there(server):
    server.good(COMPLETION, {"prompt": "hello", "max_tokens": 2})
    found = families(server)
    kinds = {name.removeprefix("vllm:"): family.type for name, family in found.items()}
    for name in HISTOGRAMS:
        assert kinds[name] == "histogram", name
    for name in ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc", "winnow_kv_bytes", "winnow_prefill_longest_quantum_seconds"):
        assert kinds[name] == "gauge", name
    for name in ("prefix_cache_queries", "prefix_cache_hits", "num_preemptions", "prompt_tokens", "prompt_tokens_cached", "generation_tokens", "request_success"):
        assert kinds[name] == "counter", name
    assert all(family.documentation for family in found.values())


def test_promtool_finds_nothing_but_vllms_colons(server):
    promtool = shutil.which("promtool")
    if not promtool:
        pytest.skip("promtool is not installed")
    server.post(COMPLETION, {"prompt": 5})
    said = subprocess.run([promtool, "check", "metrics"], input=exposition(server), capture_output=True, text=True, timeout=60)
    complaints = [line for line in (said.stdout + said.stderr).splitlines() if not line.endswith("should not contain ':'")]
    assert complaints == [] and said.returncode in (0, 3), said
    assert subprocess.run([promtool, "check", "metrics"], input="a{ 1\n", capture_output=True, text=True, timeout=60).returncode == 1


def test_counters_are_what_usage_says(server):
    def work():
        bodies = [
            {"prompt": "hello there", "max_tokens": 7, "ignore_eos": True},
            {"prompt": ["a b c", "words and words"], "max_tokens": 3, "n": 2, "ignore_eos": True, "temperature": 1},
            {"prompt": "nothing", "max_tokens": 0},
            {"prompt": "stream this", "max_tokens": 5, "ignore_eos": True, "stream": True, "stream_options": {"include_usage": True}},
        ]
        out = [server.good(COMPLETION, body)["usage"] for body in bodies[:3]]
        return [*out, server.stream(COMPLETION, bodies[3])[-1]["usage"]]

    usages, change = changes(server, work)
    prompt = sum(usage["prompt_tokens"] for usage in usages)
    generated = sum(usage["completion_tokens"] for usage in usages)
    assert change["prompt_tokens_total",] == prompt
    assert change["generation_tokens_total",] == generated == 7 + 3 * 4 + 5
    assert change["request_success_total", "length"] == 1 + 4 + 1 + 1 and ("request_success_total", "abort") not in change
    prompts = 5
    for name in HISTOGRAMS[2:]:
        assert change[f"{name}_count",] == prompts, name
    assert change["request_prompt_tokens_sum",] == prompt and change["request_generation_tokens_sum",] == generated
    assert change["time_to_first_token_seconds_count",] == prompts - 1, "one has no token"
    assert change["inter_token_latency_seconds_count",] == generated - (1 + 4 + 1)
    in_parts = sum(change.get((f"{name}_sum",), 0) for name in ("request_queue_time_seconds", "request_prefill_time_seconds", "request_decode_time_seconds"))
    assert 0 < in_parts <= change["e2e_request_latency_seconds_sum",]


def test_who_has_an_answer_does_not_find_its_request(model):
    """Even while the engine is busy: between two tokens of one request it reads another's prompt for long."""
    with Server(model, "--context", "100000", "--max-itl", "300") as one:
        with start(one, LONG), one.begin_post(COMPLETION, {"prompt": [5] * 90_000, "max_tokens": 1}):
            wait_for(lambda: sorted(slot["phase"] for slot in one.get("/slots")[1]) == ["answering", "reading"])
            busy = 0
            for _ in range(3):
                reply = one.good(COMPLETION, {"prompt": "hello", "max_tokens": 3, "ignore_eos": True})
                slots = one.get("/slots")[1]
                assert reply["id"] not in [slot["id"] for slot in slots]
                busy += "reading" in [slot["phase"] for slot in slots]
            assert busy > 0, "the engine was busy"
        one.wait_until_idle()


def test_a_document_is_a_request_without_an_answer(model, work):
    with Server(model, "--documents", f"{work}/shelf") as one:
        added, change = changes(one, lambda: one.good("/v1/documents", {"name": "a", "text": "words " * 20}))
        assert change["prompt_tokens_total",] == change["request_prompt_tokens_sum",] == added["tokens"]
        assert change["request_success_total", "length"] == 1 and ("generation_tokens_total",) not in change


def test_texts_that_are_kept(server):
    message = {"role": "user", "content": [{"type": "text", "text": "words " * 50}, {"type": "text", "text": "Why?"}]}
    body = {"messages": [message], "max_tokens": 2, "winnow": {"protocol": "question-agnostic"}}

    def work():
        return [server.good("/v1/chat/completions", body)["usage"] for _ in range(3)]

    usages, change = changes(server, work)
    cached = usages[1]["prompt_tokens_details"]["cached_tokens"]
    assert usages[0]["prompt_tokens_details"]["cached_tokens"] == 0 and cached > 50
    assert change["prompt_tokens_cached_total",] == change["prefix_cache_hits_total",] == 2 * cached
    assert change["prefix_cache_queries_total",] == 3 * cached
    assert change["winnow_kv_bytes", "prefixes"] > 0


def test_texts_that_are_dropped(model):
    """Tokens are dropped by whole blocks, when others need their memory."""
    with Server(model, "--context", "10000", "--memory", "64MiB", "--prefix-memory", "256KiB") as one:

        def work():
            return [one.good(COMPLETION, {"prompt": f"{word} words " * 40, "max_tokens": 1}) for word in ("some", "many", "few", "other", "some")]

        replies, change = changes(one, work)
        assert replies[-1]["usage"]["prompt_tokens_details"]["cached_tokens"] == change.get(("prefix_cache_hits_total",), 0) == 0
        assert change["winnow_prefix_dropped_tokens_total",] > 0 and change["winnow_prefix_dropped_tokens_total",] % 64 == 0
        assert 0 < change["winnow_kv_bytes", "prefixes"] <= 256 << 10


def test_what_is_refused(server):
    before = values(server)  # first, because this call may skip the case
    clients = [start(server, LONG) for _ in range(3)]
    assert server.post(COMPLETION, LONG)[0] == 429
    assert server.post(COMPLETION, {"prompt": [1] * 200_000})[0] == 400
    for client in clients:
        client.close()
    for body in ("{", {"prompt": 5}, {"prompt": "x", "winnow": {"kv": "snapky"}}):
        assert server.post(COMPLETION, body)[0] == 400
    assert server.post("/tokenize", {})[0] == 400
    assert server.get("/nope")[0] == 404
    assert server.post(COMPLETION, {"prompt": "x", "suffix": "y"})[0] == 501
    server.wait_until_idle()
    after = values(server)
    counts = {reason: after["winnow_rejected_total", reason] - before.get(("winnow_rejected_total", reason), 0) for name, *reason in after if name == "winnow_rejected_total" for reason in reason}
    assert counts == {"rate_limit_exceeded": 1, "context_length_exceeded": 1, "invalid_request_error": 4, "not_found_error": 1, "not_implemented_error": 1}
    assert after["request_success_total", "abort"] - before["request_success_total", "abort"] == 3


def test_gauges_while_requests_run_and_after(server):
    """The bytes held equal those of /slots, grow with the entries of the text, and are 0 in the end."""
    server.wait_until_idle()  # requests of the previous case may still run
    alone = server.good(COMPLETION, {"prompt": "hello", "max_tokens": 1, "ignore_eos": True})
    before = values(server)
    clients = [start(server, LONG) for _ in range(3)]
    wait_for(lambda: values(server)["num_requests_waiting",] == 1)
    earlier, now, later = server.get("/slots")[1], values(server), server.get("/slots")[1]
    assert now["num_requests_running",] == 2
    for state in ("promised", "held"):
        low, high = (sum(slot[f"bytes_{state}"] for slot in slots if slot["is_processing"]) for slots in (earlier, later))
        assert 0 < low <= now["winnow_kv_bytes", state] <= high, state
    assert now["kv_cache_usage_perc",] == pytest.approx(now["winnow_kv_bytes", "promised"] / (2**30 - 2**26))
    per_entry = alone["winnow"]["bytes_held"] / alone["winnow"]["entries_per_head"]
    tokens = sum(slot["prompt_tokens"] + slot["completion_tokens"] for slot in earlier if slot["is_processing"])
    assert now["winnow_kv_bytes", "held"] >= per_entry * (tokens - 2)
    heads = now["winnow_kv_entries", "full"] / sum(slot["prompt_tokens"] + slot["completion_tokens"] for slot in later if slot["is_processing"])
    assert heads > 1, "each layer and KV head has its own"
    for client in clients:
        client.close()
    server.wait_until_idle()
    idle = values(server)
    for gauge in (("num_requests_running",), ("num_requests_waiting",), ("kv_cache_usage_perc",), ("winnow_kv_bytes", "promised"), ("winnow_kv_bytes", "held"), ("winnow_kv_entries", "full")):
        assert idle[gauge] == 0, gauge
    assert idle["winnow_kv_bytes", "prefixes"] == before["winnow_kv_bytes", "prefixes"]


def test_answers_that_wait_for_memory_are_paused_and_go_on(model):
    """Two answers that each need two thirds of the memory begin together; the later one waits for the end of the other."""
    with Server(model, "--context", "100000", "--memory", "8MiB", "--prefix-memory", "0") as one:
        most = one.good(COMPLETION, {"prompt": "hello", "max_tokens": 90_000, "logit_bias": {"2": 100}})["winnow"]["max_tokens"]
        body = {**LONG, "max_tokens": most * 2 // 3}
        clients = [start(one, body) for _ in range(2)]
        wait_for(lambda: sorted(slot["phase"] for slot in one.get("/slots")[1]) == ["answering", "paused"])
        now = values(one)
        assert now["winnow_requests_paused",] == 1 and now["num_requests_running",] == 2 and now["num_requests_waiting",] == 0
        clients[0].close()
        wait_for(lambda: [slot["phase"] for slot in one.get("/slots")[1]] == ["answering"])
        clients[1].close()
        one.wait_until_idle()
        assert values(one)["winnow_requests_paused",] == 0


def test_entries_are_counted_by_spec(server):
    def held(spec):
        return [value for (name, *labels), value in values(server).items() if name == "winnow_kv_entries" and labels[0].startswith(spec)]

    for spec in ("snapkv", "streaming-llm"):
        client = start(server, {**LONG, "prompt": "words " * 100, "winnow": {"kv": spec, "budget": 64}})
        wait_for(lambda: [count for count in held(spec) if count >= 64])  # at once: an answer that nobody reads is ended
        assert len(held(spec)) == 1, spec
        client.close()
        server.wait_until_idle()
    assert all(value == 0 for (name, *_), value in values(server).items() if name == "winnow_kv_entries")


def test_the_longest_quantum_is_of_those_that_answers_waited_for(model):
    """A prompt that is read alone delays nobody; one that is read beside an answer delays it by a part of its reading
    time."""
    name = "winnow_prefill_longest_quantum_seconds"
    with Server(model, "--context", "100000") as one:
        one.good(COMPLETION, {"prompt": "words " * 400, "max_tokens": 1})
        assert values(one)[name,] == 0
        client = start(one, LONG)
        wait_for(lambda: [slot["phase"] for slot in one.get("/slots")[1]] == ["answering"])
        read_ms = one.good(COMPLETION, {"prompt": "others " * 400, "max_tokens": 1})["timings"]["prompt_ms"]
        assert 0 < values(one)[name,] < read_ms / 1000, "there are several layers"
        client.close()
        one.wait_until_idle()


def test_it_needs_a_key(model):
    with Server(model, "--api-key", "secret") as one:
        assert one.ask("GET", "/metrics")[0] == 401
        status, _, text = one.ask("GET", "/metrics", Authorization="Bearer secret")
        assert status == 200 and b'winnow_rejected_total{model_name="tiny",reason="authentication_error"} 1' in text and b"secret" not in text
