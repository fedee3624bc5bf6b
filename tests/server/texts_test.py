# SPDX-License-Identifier: Apache-2.0
"""The routes about the server, its model, texts and tokens."""

import json
import subprocess

import pytest
from program import WINNOW
from service import Server


def test_the_model_is_described(server, model):
    inspected = json.loads(subprocess.run([WINNOW, "inspect", model, "--json"], capture_output=True, text=True, check=True).stdout)
    for path in ("/v1/models", "/models"):
        status, reply = server.get(path)
        (one,) = reply["data"]
        assert status == 200 and reply["object"] == "list" and one["id"] == "tiny" and one["object"] == "model"
        meta = one["meta"]
        assert meta["architecture"] == "llama" and meta["n_ctx"] == 100_000 and meta["n_ctx_train"] == inspected["ctx_train"] and meta["n_vocab"] == 288
        # embedding 288 x 64; in each of 2 layers: 2 norms of 64, query and output 64 x 256, key and value 64 x 128, 3 of 64 x 128; a last norm
        assert meta["n_params"] == 288 * 64 + 2 * (2 * 64 + 2 * 64 * 256 + 2 * 64 * 128 + 3 * 64 * 128) + 64


def test_the_model_is_found_by_its_name(server):
    listed = server.get("/v1/models")[1]["data"][0]
    assert server.get("/v1/models/tiny") == (200, listed)
    for name in ("other", "tiny.gguf", "Tiny", "tin%79y", "%0A"):
        status, reply = server.get(f"/v1/models/{name}")
        assert status == 404 and "tiny" in reply["error"]["message"], (name, reply)


def test_an_alias_names_the_model(model):
    with Server(model, "--alias", "our/best model", "-n", "1") as one:
        assert one.get("/v1/models")[1]["data"][0]["id"] == "our/best model" == one.get("/props")[1]["model"]
        assert one.get("/v1/models/our%2Fbest%20model")[0] == 200 and one.get("/v1/models/tiny")[0] == 404
        assert one.good("/v1/completions", {"prompt": "hello"})["model"] == "our/best model"
        assert "our/best model" in one.ask("GET", "/metrics")[2].decode()


def test_properties_and_slots(server):
    status, props = server.get("/props")
    assert status == 200 and props["total_slots"] == 16 and props["chat_template"] == "chatml"
    assert props["default_generation_settings"]["winnow"] == {"kv": "full", "budget": None, "kv_type": "f16", "protocol": "question-aware"}
    assert server.get("/slots") == (200, [])


def test_slots_show_what_runs_and_no_texts(server):
    body = {"prompt": "a secret " * 20, "max_tokens": 90_000, "ignore_eos": True, "stream": True, "winnow": {"kv": "snapkv:window=8", "budget": "40"}}
    with server.begin_post("/v1/completions", body):
        seen = []
        while not seen or seen[0]["completion_tokens"] == 0:
            seen = server.get("/slots")[1]
        assert "secret" not in json.dumps(seen)
        (slot,) = seen
        assert slot["spec"] == "snapkv:window=8" and slot["budget"] == "40" and slot["phase"] == "answering" and slot["is_processing"]
        assert slot["id"].startswith("cmpl-") and slot["prompt_tokens"] == server.good("/tokenize", {"prompt": "a secret " * 20})["count"]
        assert 0 < slot["bytes_held"] <= slot["bytes_promised"]
    server.wait_until_idle()


@pytest.mark.parametrize("text", ["hello", "", "naïve 𝄞 text", "a\nb\tc"])
def test_tokens_and_back(server, text):
    plain = server.good("/tokenize", {"content": text})
    assert plain["count"] == len(plain["tokens"]) and plain["max_model_len"] == 100_000
    back = server.good("/detokenize", {"tokens": plain["tokens"]})
    assert back["content"].replace("\u2581", " ").lstrip(" ") == text.lstrip(" "), "the tiny vocabulary writes spaces so"
    assert back["prompt"] == back["content"]
    with_bos = server.good("/tokenize", {"prompt": text})["tokens"]
    assert with_bos == [1, *server.good("/tokenize", {"prompt": text, "add_special_tokens": False})["tokens"]]
    assert server.good("/tokenize", {"content": text, "add_special": True})["tokens"] == with_bos


def test_bos_that_is_there_is_not_added(server):
    assert server.good("/tokenize", {"prompt": "<s>hello"})["tokens"].count(1) == 1


def test_names_of_control_tokens_are_tokens_or_text(server):
    assert server.good("/tokenize", {"content": "</s>"})["tokens"] == [2]
    assert 2 not in server.good("/tokenize", {"content": "</s>", "parse_special": False})["tokens"]
    assert server.good("/tokenize", {"content": "a</s>", "return_token_strs": True})["token_strs"][-1] == "</s>"


def test_a_chat_cannot_write_control_tokens(server, model):
    from service import Server

    messages = {"messages": [{"role": "user", "content": "</s></s>"}], "max_tokens": 1}
    as_text = server.good("/v1/chat/completions", messages)["usage"]["prompt_tokens"]
    with Server(model, "--special") as one:
        assert one.good("/v1/chat/completions", messages)["usage"]["prompt_tokens"] < as_text


def test_a_template_is_applied(server):
    messages = [{"role": "system", "content": "S"}, {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}]
    body = "<|im_start|>system\nS<|im_end|>\n<|im_start|>user\na\nb<|im_end|>\n"
    assert server.good("/apply-template", {"messages": messages}) == {"prompt": body + "<|im_start|>assistant\n"}
    assert server.good("/apply-template", {"messages": messages, "add_generation_prompt": False}) == {"prompt": body}


def test_what_lm_eval_asks_of_a_tokenizer(server):
    status, info = server.get("/tokenizer_info")
    assert status == 200 and info == {"bos_token": "<s>", "eos_token": "</s>", "chat_template": "chatml"}
    assert server.good("/tokenize", {"prompt": info["eos_token"], "add_special_tokens": False})["tokens"] == [2]


def test_a_model_without_a_template_has_the_nearest_one(work):
    from program import make_tiny_gguf
    from service import Server

    with Server(make_tiny_gguf(f"{work}/plain.gguf")) as one:
        messages = {"messages": [{"role": "user", "content": "x"}]}
        assert one.good("/apply-template", messages)["prompt"] == "<|im_start|>user\nx<|im_end|>\n<|im_start|>assistant\n"
        assert one.good("/v1/chat/completions", {**messages, "max_tokens": 1})["choices"]
        assert one.said().count("there is no chat template; messages are rendered with the built-in template chatml") == 1
        assert one.good("/v1/completions", {"prompt": "x", "max_tokens": 1})["choices"]
        assert one.get("/tokenizer_info")[1]["chat_template"] is None


@pytest.mark.parametrize("role", ["system", "user", "assistant"])
def test_zero_bytes_are_read(server, role):
    messages = [{"role": role, "content": "Alpha.\x00 Omega."}, {"role": "user", "content": "hi"}]
    assert "Alpha.\x00 Omega." in server.good("/apply-template", {"messages": messages})["prompt"]
    tokens = server.good("/tokenize", {"messages": messages})["tokens"]
    assert "Omega" in server.good("/detokenize", {"tokens": tokens})["content"]
