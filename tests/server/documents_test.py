# SPDX-License-Identifier: Apache-2.0
"""Documents over HTTP: storage, owners, and failures of the store."""

import json
import os
import pathlib
import random
import subprocess
import threading
import urllib.parse

import pytest
from program import PATIENCE, WINNOW
from redis_server import Redis, needs_redis
from service import Server, sentence

DOCUMENTS = "/v1/documents"


def words(count, seed=0):
    chance = random.Random(seed)
    return " ".join(chance.choice(["one", "two", "three", "four"]) for _ in range(count))


def one(name):
    return f"{DOCUMENTS}/{urllib.parse.quote(name, safe='')}"


def remove(server, name, **headers):
    status, _, body = server.ask("DELETE", one(name), **headers)
    return status, json.loads(body)


def names(server):
    status, reply = server.get(DOCUMENTS)
    assert status == 200 and reply["object"] == "list", reply
    return [d["name"] for d in reply["data"]]


def docs(store, *arguments):
    """The output of `winnow docs` for the same store."""
    command = [WINNOW, "docs", arguments[0], "--store", str(store), *map(str, arguments[1:])]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE).stdout


@pytest.fixture
def store(tmp_path):
    return tmp_path / "store"


@pytest.fixture
def shelf(model, store):
    with Server(model, "--documents", str(store), "--context", "100000") as server:
        yield server
        assert server.get("/health") == (200, {"status": "ok"})
        server.wait_until_idle()


def test_the_life_of_a_document(shelf, store):
    assert names(shelf) == []
    first = shelf.good(DOCUMENTS, {"name": "a", "text": words(33), "tags": ["x", "y"]})
    assert first["outcome"] == "added" and first["was_read"] and first["read_ms"] > 0 and first["tags"] == ["x", "y"] and first["spec"] == "full"
    assert first["tokens"] == shelf.good("/tokenize", {"prompt": words(33)})["count"] and first["bytes"] > 0
    again = shelf.good(DOCUMENTS, {"name": "a", "text": words(33)})
    assert again["outcome"] == "unchanged" and not again["was_read"] and again["id"] == first["id"] and again["tags"] == []
    other = shelf.good(DOCUMENTS, {"name": "a", "text": words(32)})
    assert other["outcome"] == "replaced" and other["was_read"] and other["id"] != first["id"]
    small = shelf.good(DOCUMENTS, {"name": "small", "text": words(32), "winnow": {"kv": "snapkv:window=8", "budget": "20%", "kv_type": "q8_0"}})
    assert (small["spec"], small["budget"], small["kv_type"]) == ("snapkv:window=8", "20%", "q8_0") and small["bytes"] < other["bytes"] / 2
    twin = shelf.good(DOCUMENTS, {"name": "twin", "text": words(32)})
    assert twin["outcome"] == "added" and not twin["was_read"] and twin["id"] == other["id"]

    assert names(shelf) == ["a", "small", "twin"]
    listed = json.loads(docs(store, "list", "--json"))["documents"]
    assert shelf.get(DOCUMENTS)[1]["data"] == listed, "the command says the same"
    assert shelf.get(one("small")) == (200, listed[1])
    assert remove(shelf, "a") == (200, {"name": "a", "deleted": True})
    status, reply = shelf.get(one("a"))
    assert status == 404 and sentence(reply, "there is no document 'a': there are 'small', 'twin'")["code"] == "document_not_found"
    assert str(store) not in reply["error"]["message"], "the server's folder is no matter of its clients"
    assert remove(shelf, "a")[0] == 404
    assert "all checksums hold" in docs(store, "verify")


@pytest.mark.parametrize("name", ["a/b", "50 % é?#&", "..", "a+b", "{}"])
def test_any_name_stands_in_a_path(shelf, name):
    shelf.good(DOCUMENTS, {"name": name, "text": "hello"})
    assert shelf.get(one(name))[1]["name"] == name
    assert remove(shelf, name) == (200, {"name": name, "deleted": True})


def test_a_path_that_is_not_encoded(shelf):
    status, reply = shelf.get(f"{DOCUMENTS}/%zz")
    assert status == 400 and sentence(reply, "percent-encoded")
    assert shelf.ask("PUT", one("a"))[0] == 405 and shelf.ask("GET", f"{DOCUMENTS}/a/b")[0] == 404


@pytest.mark.parametrize(
    ("body", "field", "parts"),
    [
        pytest.param({"text": "x"}, "name", ["name is missing: give a string"], id="no_name"),
        pytest.param({"name": "a"}, "text", ["text is missing"], id="no_text"),
        pytest.param({"name": 5, "text": "x"}, "name", ["must be a string"], id="a_number"),
        pytest.param({"name": "", "text": "x"}, None, ["1 to 200 bytes"], id="an_empty_name"),
        pytest.param({"name": "a\nb", "text": "x"}, None, ["control characters"], id="two_lines"),
        pytest.param({"name": "a", "text": ""}, None, ["is empty"], id="no_words"),
        pytest.param({"name": "a", "text": "x", "tags": "t"}, "tags", ["must be a list"], id="one_tag"),
        pytest.param({"name": "a", "text": "x", "tags": ["t", 1]}, "tags[1]", ["must be a string"], id="a_tag"),
        pytest.param({"name": "a", "text": "x", "tags": [""]}, None, ["cannot be a tag"], id="an_empty_tag"),
        pytest.param({"name": "a", "text": "x", "tagz": ["t"]}, "tagz", ["did you mean tags?"], id="a_field"),
        pytest.param({"name": "a", "text": "x", "winnow": {"kv": "snap"}}, "winnow.kv", ["did you mean snapkv?"], id="a_method"),
        pytest.param({"name": "a", "text": "x", "winnow": {"kv": "snapkv"}}, "winnow.budget", ["needs a budget"], id="no_budget"),
        pytest.param({"name": "a", "text": "x", "winnow": {"ask": "samkv"}}, "winnow.ask", ["winnow has no field ask"], id="ask"),
        pytest.param({"name": "a", "text": "x", "winnow": {"kv": "streaming-llm:positions=cache", "budget": 64}}, None, ["cannot compress a document"], id="moving"),
        pytest.param({"name": "a", "text": words(20_000)}, None, ["the document a has", "the model's context"], id="too_long"),
    ],
)
def test_what_cannot_be_added(shelf, body, field, parts):
    status, reply = shelf.post(DOCUMENTS, body)
    assert status == 400 and sentence(reply, *parts)["param"] == field, reply
    assert names(shelf) == []


def test_a_server_without_documents(server):
    for method, path in (("GET", DOCUMENTS), ("POST", DOCUMENTS), ("GET", one("a")), ("DELETE", one("a"))):
        status, _, reply = server.ask(method, path, "{}" if method == "POST" else None)
        assert status == 501 and sentence(json.loads(reply), "--documents"), reply


def test_documents_are_read_beside_answers(model, store):
    """An answer and each document are the same as alone, however many are read at once; the same document may come
    twice."""
    body = {"prompt": "hello there", "max_tokens": 300, "ignore_eos": True}
    texts = {f"d{i}": words(15 + 6 * (i // 2), i // 2) for i in range(8)}
    with Server(model, "--documents", str(store), "--context", "100000") as server:
        alone = server.good("/v1/completions", body)["choices"][0]["text"]
        replies = {}

        def add(name):
            replies[name] = server.post(DOCUMENTS, {"name": name, "text": texts[name]})

        def answer(name):
            replies[name] = server.post("/v1/completions", body)

        threads = [threading.Thread(target=add, args=(name,)) for name in texts] + [threading.Thread(target=answer, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        for name in texts:
            status, reply = replies[name]
            assert status == 200 and reply["outcome"] == "added", reply
        for i in range(4):
            assert replies[i][0] == 200 and replies[i][1]["choices"][0]["text"] == alone
        for i in range(0, 8, 2):
            assert replies[f"d{i}"][1]["id"] == replies[f"d{i + 1}"][1]["id"]
        server.wait_until_idle()
        assert server.end()[0] == 0
    with Server(model, "--documents", str(store)) as server:
        assert names(server) == sorted(texts), "after a restart, too"
    assert "all checksums hold" in docs(store, "verify")
    for name, text in texts.items():
        file = pathlib.Path(store).parent / name
        file.write_text(text)
        (added,) = json.loads(docs(f"{store}-of-the-command", "add", "-m", model, "--threads", 1, "--json", file))["documents"]
        assert added["id"] == replies[name][1]["id"] and added["bytes"] == replies[name][1]["bytes"]
    asked = [json.loads(docs(place, "ask", "-m", model, "--threads", 1, "--json", "--all", "-p", "why?", "-n", 8, "--logprobs", 2)) for place in (store, f"{store}-of-the-command")]
    assert asked[0]["logprobs"] == asked[1]["logprobs"] and asked[0]["answer"] == asked[1]["answer"]


def test_a_client_that_goes_while_its_document_is_read(shelf):
    for _ in range(5):
        with shelf.begin_post(DOCUMENTS, {"name": "gone", "text": words(33)}):
            while not shelf.get("/slots")[1] and names(shelf) == []:
                pass
        shelf.wait_until_idle()
        if names(shelf):
            remove(shelf, "gone")
    assert shelf.good(DOCUMENTS, {"name": "stays", "text": words(30)})["outcome"] == "added"


def test_all_keys_share_the_documents(model, store):
    with Server(model, "--documents", str(store), "--api-key", "alpha", "--api-key", "beta") as server:
        assert server.get(DOCUMENTS)[0] == 401 and server.post(DOCUMENTS, {"name": "a", "text": "x"})[0] == 401 and remove(server, "a")[0] == 401
        assert server.good(DOCUMENTS, {"name": "a", "text": "x"}, X_Api_Key="alpha")["outcome"] == "added"
        assert server.get(one("a"), X_Api_Key="beta")[0] == 200
        assert remove(server, "a", X_Api_Key="beta")[0] == 200
        assert server.get(one("a"), X_Api_Key="alpha")[0] == 404


def test_a_document_that_does_not_fit_into_memory(model, store):
    with Server(model, "--documents", str(store), "--memory", "400KiB", "--prefix-memory", "0") as server:
        status, reply = server.post(DOCUMENTS, {"name": "a", "text": words(33)})
        assert status == 400 and sentence(reply, "the request needs", "400.0 KiB")["code"] == "insufficient_memory"
        assert server.good(DOCUMENTS, {"name": "b", "text": "x"})["outcome"] == "added"


def test_a_store_that_is_not_one_ends_the_command(model, work):
    file = pathlib.Path(work) / "file"
    file.write_text("not a folder")
    for where, code in ((str(file), 2), ("redis://127.0.0.1:1", 1)):
        result = subprocess.run([WINNOW, "serve", "-m", model, "--port", "0", "--documents", where], capture_output=True, text=True, timeout=PATIENCE)
        assert result.returncode == code and where in result.stderr and "listening" not in result.stderr, result


@needs_redis
def test_a_store_that_is_gone_and_comes_back(model):
    with Redis("--appendonly", "yes") as redis, Server(model, "--documents", redis.url(0)) as server:
        server.good(DOCUMENTS, {"name": "a", "text": words(33)})
        redis.stop()
        for status, reply in (server.get(DOCUMENTS), server.get(one("a")), remove(server, "a"), server.post(DOCUMENTS, {"name": "b", "text": words(9)})):
            assert status == 503 and sentence(reply, "the documents in the server's store cannot be reached")["code"] == "store_unavailable", reply
            assert redis.url(0) not in json.dumps(reply) and redis.url(0) in server.said(), "its place is for the log"
        assert server.get("/health")[0] == 200 and server.good("/v1/completions", {"prompt": "x", "max_tokens": 2})
        redis.start()
        assert names(server) == ["a"]
        assert server.good(DOCUMENTS, {"name": "b", "text": words(9)})["outcome"] == "added"


@needs_redis
def test_a_store_that_goes_while_a_document_is_read(model):
    """Only this document is lost, and its client gets an error."""
    with Redis() as redis, Server(model, "--documents", redis.url(0), "--parallel", "1", "--context", "100000") as server:
        replies = []
        blocking = server.begin_post("/v1/completions", {"prompt": "x", "max_tokens": 90_000, "ignore_eos": True, "stream": True})
        while len(server.get("/slots")[1]) < 1:
            pass
        adding = threading.Thread(target=lambda: replies.append(server.post(DOCUMENTS, {"name": "a", "text": words(33)})))
        adding.start()
        while len(server.get("/slots")[1]) < 2:
            pass
        redis.stop()
        blocking.close()
        adding.join()
        status, reply = replies[0]
        assert status == 503 and sentence(reply, "cannot be reached"), reply
        server.wait_until_idle()
        redis.start()
        assert server.good(DOCUMENTS, {"name": "a", "text": words(33)})["outcome"] == "added"


COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
METHODS = [("samkv", None), ("samkv:update=overwrite", None), ("recompute", None), ("reuse", None), ("epic:initial=8", None), ("cacheblend", None), ("multi-infllm", 64)]


def asked(answer):
    return answer["choices"][0]["message"]["content"] if "message" in answer["choices"][0] else answer["choices"][0]["text"]


def body_of(method, budget, question, chat, names=("a", "b")):
    """A request, and the options of the equivalent command."""
    how = {"documents": list(names), "ask": method} | ({"budget": budget} if budget else {})
    prompt = {"messages": [{"role": "user", "content": question}]} if chat else {"prompt": question}
    options = ["--doc", *names, "--method", method, "-p", question, "-n", 12] + (["--budget", budget] if budget else []) + ([] if chat else ["--raw"])
    return {**prompt, "max_tokens": 12, "winnow": how}, options


def test_an_answer_is_that_of_the_command(shelf, store, model):
    for i, name in enumerate("ab"):
        shelf.good(DOCUMENTS, {"name": name, "text": words(30, i)})
    bodies, expected, got = [], [], {}
    for method, budget in METHODS:
        for chat in (True, False):
            body, options = body_of(method, budget, "one or two?", chat)
            record = json.loads(docs(store, "ask", "-m", model, "--threads", 1, "--json", *options))
            reply = shelf.good(CHAT if chat else COMPLETIONS, body)
            assert asked(reply) == record["answer"], (method, chat)
            assert reply["usage"]["prompt_tokens"] == record["tokens"]["prompt"] and reply["winnow"]["spec"] == record["spec"] and reply["winnow"]["bytes_held"] > 0
            bodies.append((CHAT if chat else COMPLETIONS, body))
            expected.append(record["answer"])

    def ask(i):
        got[i] = shelf.post(*bodies[i])

    threads = [threading.Thread(target=ask, args=(i,)) for i in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [(got[i][0], asked(got[i][1])) for i in range(len(bodies))] == [(200, text) for text in expected], "all at once, too"


@pytest.mark.parametrize(
    ("change", "status", "field", "parts"),
    [
        pytest.param({"winnow": {"documents": []}}, 400, "winnow.documents", ["empty list"], id="none"),
        pytest.param({"winnow": {"documents": "a"}}, 400, "winnow.documents", ["must be a list"], id="a_text"),
        pytest.param({"winnow": {"documents": [1]}}, 400, "winnow.documents[0]", ["must be a string"], id="a_number"),
        pytest.param({"winnow": {"documents": ["a", "bb"]}}, 404, None, ["there is no document 'bb': there are 'a'"], id="unknown"),
        pytest.param({"winnow": {"ask": "samkv"}}, 400, "winnow.ask", ["winnow.documents"], id="no_documents"),
        pytest.param({"winnow": {"documents": ["a"], "ask": "sam"}}, 400, "winnow.ask", ["did you mean samkv?"], id="method"),
        pytest.param({"winnow": {"documents": ["a"], "ask": "multi-infllm"}}, 400, "winnow.budget", ["needs a budget"], id="no_budget"),
        pytest.param({"winnow": {"documents": ["a"], "budget": 64}}, 400, "winnow.budget", ["takes no budget"], id="budget"),
        pytest.param({"winnow": {"documents": ["a"], "kv": "snapkv", "budget": 64}}, 400, "winnow.kv", ["cannot be combined with"], id="kv"),
        pytest.param({"winnow": {"documents": ["small"]}}, 400, None, ["samkv needs all tokens of a document, but document 1 of 1", "use reuse or recompute"], id="compressed"),
        pytest.param({"winnow": {"documents": ["a"]}, "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "y"}]}, 400, "messages", ["one message"], id="system"),
        pytest.param({"winnow": {"documents": ["a"] * 257}}, 400, "winnow.documents", ["257 elements: at most 256"], id="too_many"),
    ],
)
def test_what_cannot_be_asked(shelf, change, status, field, parts):
    shelf.good(DOCUMENTS, {"name": "a", "text": words(30)})
    shelf.good(DOCUMENTS, {"name": "small", "text": words(30), "winnow": {"kv": "snapkv:window=8", "budget": 40}})
    for stream in (False, True):
        got, reply = shelf.post(CHAT, {"messages": [{"role": "user", "content": "x"}], "max_tokens": 2, "stream": stream, **change})
        assert got == status and sentence(reply, *parts)["param"] == field, reply


def test_documents_that_are_longer_than_the_context(model, store):
    with Server(model, "--documents", str(store), "--context", "1000") as server:
        server.good(DOCUMENTS, {"name": "a", "text": words(33)})
        status, reply = server.post(COMPLETIONS, {"prompt": "x", "max_tokens": 1, "winnow": {"documents": ["a"] * 200, "ask": "reuse"}})
        assert status == 400 and sentence(reply, "exceeds the available context size of 1000")["code"] == "context_length_exceeded"


def test_asking_without_documents_or_a_store(server):
    status, reply = server.post(COMPLETIONS, {"prompt": "x", "winnow": {"documents": ["a"]}})
    assert status == 501 and sentence(reply, "--documents")["param"] == "winnow.documents"


def test_documents_that_are_removed_while_they_are_asked(shelf):
    """Each request gets an answer or an error, and the server goes on."""
    seen = set()
    for i in range(12):
        shelf.good(DOCUMENTS, {"name": "a", "text": words(30, i)})
        replies = []
        body, _ = body_of("samkv", None, "x", False, ["a"])
        asking = [threading.Thread(target=lambda: replies.append(shelf.post(COMPLETIONS, body))) for _ in range(3)]
        for thread in asking:
            thread.start()
        remove(shelf, "a")
        for thread in asking:
            thread.join()
        for status, reply in replies:
            assert status in (200, 404, 409), reply
            seen.add(status)
    assert seen


def test_a_client_that_goes_while_documents_are_asked(shelf):
    shelf.good(DOCUMENTS, {"name": "a", "text": words(30)})
    body, _ = body_of("recompute", None, "x", False, ["a"] * 100)
    with shelf.begin_post(COMPLETIONS, body | {"max_tokens": 20_000, "ignore_eos": True}):
        while not shelf.get("/slots")[1]:
            pass
    shelf.wait_until_idle()


@pytest.mark.parametrize("left", [0, 100])
def test_a_store_whose_files_are_cut_gives_sentences(model, store, left):
    """The server goes on."""
    with Server(model, "--documents", str(store), "--context", "100000") as server:
        for i in range(4):
            server.good(DOCUMENTS, {"name": f"a{i}", "text": words(33, i)})
        for file in (store / "values").iterdir():
            os.truncate(file, left)
        body, _ = body_of("reuse", None, "x", False, ["a0", "a3"])
        status, reply = server.post(COMPLETIONS, body)
        assert status != 200 and sentence(reply), reply
        os.truncate(store / "records", left)
        status, reply = server.get(one("a1"))
        assert status == 200 or sentence(reply)
        server.good(COMPLETIONS, {"prompt": "x", "max_tokens": 1})
