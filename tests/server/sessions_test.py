# SPDX-License-Identifier: Apache-2.0
"""Sessions: a conversation has the same answers whether it continues, was stored, or is sent as a whole."""

import contextlib
import http.client
import json
import random
import shutil
import signal
import subprocess
import threading

import pytest
from program import WINNOW
from redis_server import Redis, needs_redis
from service import Server, sentence, wait_for

CHAT = "/v1/chat/completions"
DOCUMENT = "The ninth ship of the harbour was called Meridian, and nobody knew why. " * 12
QUESTIONS = ["What was the ship called?", "Say it again, in other words: " + "who knew? " * 20, "Why?", "And then?"]
WAYS = [{"kv": "full"}] + [
    {"kv": kv, "budget": "96"} for kv in ("snapkv:window=8", "ada-snapkv:window=8", "streaming-llm", "h2o", "tova", "quest", "chunk(snapkv:window=8)", "kvzip", "ems", "keydiff")
]


@pytest.fixture
def where(work):
    folder = f"{work}/sessions-{random.random()}"
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def first_message():
    return {"role": "user", "content": [{"type": "text", "text": DOCUMENT}, {"type": "text", "text": QUESTIONS[0]}]}


def say(server, name, message, way, **fields):
    body = {"messages": [message], "max_tokens": 12, "ignore_eos": True, "winnow": {**way, "session": name}, **fields}
    return server.good(CHAT, body)


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


def user(text):
    return {"role": "user", "content": text}


def as_a_whole(server, messages, way):
    """The same conversation without a session."""
    body = {"messages": messages, "max_tokens": 12, "ignore_eos": True, "winnow": {**way, "protocol": "question-agnostic"}}
    return server.good(CHAT, body)


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way["kv"])
def test_a_session_goes_on_as_the_conversation_sent_as_a_whole(model, where, way):
    """One server finds earlier turns; another one, without memory for texts, reads everything each time."""
    options = ["--context", "100000"]
    with Server(model, *options, "--sessions", where) as server, Server(model, *options, "--prefix-memory", "0") as other:
        said = []
        for turn, question in enumerate(QUESTIONS):
            said.append(first_message() if turn == 0 else user(question))
            answer = say(server, "tale", said[-1], way)
            whole = as_a_whole(other, said, way)
            assert text_of(answer) == text_of(whole)
            assert answer["winnow"] == whole["winnow"] and answer["usage"]["prompt_tokens"] == whole["usage"]["prompt_tokens"]
            assert whole["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
            cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            assert cached == (0 if turn == 0 else text_tokens), "all that came before the last question"
            text_tokens = answer["usage"]["prompt_tokens"] - question_tokens(server, said)
            said.append({"role": "assistant", "content": text_of(answer)})


def question_tokens(server, said):
    """The number of tokens of the last question and of the template's text after it: one for each byte, three for a
    space."""
    last = said[-1]["content"]
    question = last if isinstance(last, str) else last[-1]["text"]
    text = server.good("/apply-template", {"messages": said})["prompt"]
    return sum(3 if byte == ord(" ") else 1 for byte in text[text.rindex(question) :].encode())


def test_a_session_survives_kill_9_and_goes_on_the_same(model, where):
    way = {"kv": "snapkv:window=8", "budget": "96"}
    with Server(model, "--sessions", where, "--context", "100000") as server:
        first = text_of(say(server, "tale", first_message(), way))
        expected = say(server, "tale", user(QUESTIONS[1]), way)
    with Server(model, "--sessions", where, "--context", "100000") as server:
        status, session = server.get("/v1/sessions/tale")
        assert status == 200 and [m["role"] for m in session["messages"]] == ["user", "assistant"] * 2
        assert session["messages"][0]["content"] == DOCUMENT + "\n" + QUESTIONS[0] and session["messages"][1]["content"] == first
        third = say(server, "tale", user(QUESTIONS[2]), way)
        said = [first_message(), {"role": "assistant", "content": first}, user(QUESTIONS[1]), {"role": "assistant", "content": text_of(expected)}]
        assert text_of(third) == text_of(as_a_whole(server, [*said, user(QUESTIONS[2])], way))


def test_kill_9_at_any_moment_loses_no_turn_that_was_answered(model, where):
    """The client counts the turns whose end it saw; the session has these, and possibly one more that was being
    sent."""
    way = {"kv": "snapkv:window=8", "budget": "96"}
    answered = kills = 0
    texts = []
    while kills < 50 or answered <= 10:  # some turns must finish
        assert kills < 1000
        kills += 1
        with Server(model, "--sessions", where, "--context", "1000000", "--max-queue-requests", "1") as server:
            status, session = server.get("/v1/sessions/tale")
            messages = session["messages"] if status == 200 else []
            assert len(messages) in (2 * answered, 2 * answered + 2)
            assert [m["content"] for m in messages][: len(texts)] == texts, "as it was before or after its last turn"
            answered, texts = len(messages) // 2, [m["content"] for m in messages]
            killer = threading.Timer(random.uniform(0, 0.4), server.process.kill)
            killer.start()
            with contextlib.suppress(OSError, http.client.HTTPException, json.JSONDecodeError):
                while True:
                    body = {"messages": [user(f"turn {answered}")], "max_tokens": 2, "ignore_eos": True, "winnow": {**way, "session": "tale"}}
                    status, answer = server.post(CHAT, body)
                    assert status == 200
                    answered += 1
                    texts += [f"turn {answered - 1}", text_of(answer)]
            killer.join()


def test_one_turn_at_a_time(model, where):
    with Server(model, "--sessions", where, "--context", "100000") as server:
        body = {"messages": [user("hello")], "max_tokens": 90_000, "ignore_eos": True, "stream": True, "winnow": {"session": "one"}}
        with server.begin_post(CHAT, body):
            wait_for(lambda: server.get("/slots")[1])
            status, reply = server.post(CHAT, {"messages": [user("too")], "winnow": {"session": "one"}})
            assert status == 409 and sentence(reply, "one", "is busy with another request")["code"] == "session_busy"
            assert say(server, "another", user("too"), {})
        server.wait_until_idle()
        wait_for(lambda: server.post(CHAT, {"messages": [user("too")], "max_tokens": 1, "winnow": {"session": "one"}})[0] == 200)
        assert len(server.get("/v1/sessions/one")[1]["messages"]) == 2, "a turn whose client has gone is none"


@contextlib.contextmanager
def in_its_turn(server):
    """Stops a server in the middle of a turn."""
    wait_for(lambda: server.get("/slots")[1])
    server.process.send_signal(signal.SIGSTOP)
    yield
    server.process.send_signal(signal.SIGCONT)


def test_two_servers_do_not_overwrite_each_other(model, where):
    with Server(model, "--sessions", where, "--context", "100000") as one, Server(model, "--sessions", where) as other:
        body = {"messages": [user("hello")], "max_tokens": 3000, "ignore_eos": True, "winnow": {"session": "both"}}
        with one.begin_post(CHAT, body) as client:
            with in_its_turn(one):
                say(other, "both", user("faster"), {})
            status = client.makefile("rb").readline().decode().split()[1]
        assert status == "409"
        assert [m["content"] for m in one.get("/v1/sessions/both")[1]["messages"]][:1] == ["faster"]


def test_a_session_that_was_begun_again_meanwhile_is_another_one(model, where):
    with Server(model, "--sessions", where, "--context", "100000") as one, Server(model, "--sessions", where) as other:
        say(one, "again", user("old"), {})
        body = {"messages": [user("goes on")], "max_tokens": 3000, "ignore_eos": True, "winnow": {"session": "again"}}
        with one.begin_post(CHAT, body) as client:
            with in_its_turn(one):
                assert other.ask("DELETE", "/v1/sessions/again")[0] == 200
                say(other, "again", user("new"), {})
            assert client.makefile("rb").readline().decode().split()[1] == "409"
        assert [m["content"] for m in one.get("/v1/sessions/again")[1]["messages"]][:1] == ["new"]


def test_a_refused_turn_frees_its_session_at_once(model, where):
    with Server(model, "--sessions", where, "--context", "100000", "--memory", "2MiB", "--prefix-memory", "0") as server:
        for _ in range(20):
            status, reply = server.post(CHAT, {"messages": [user(DOCUMENT * 20)], "max_tokens": 90_000, "winnow": {"session": "s"}})
            assert status == 400, reply


def test_a_full_session_says_so(model, where):
    with Server(model, "--sessions", where, "--context", "100") as server:
        statuses = []
        for _ in range(30):
            status, reply = server.post(CHAT, {"messages": [user("more and more")], "max_tokens": 8, "ignore_eos": True, "winnow": {"session": "s"}})
            statuses.append(status)
        assert statuses[0] == 200 and statuses[-1] == 400 and "context" in sentence(reply)["message"]
        assert all(m["content"] for m in server.get("/v1/sessions/s")[1]["messages"])


def test_a_second_signal_in_the_middle_of_turns_ends_the_server(model, where, monkeypatch):
    monkeypatch.setenv("MALLOC_PERTURB_", "165")  # makes uses of freed memory visible
    with Server(model, "--sessions", where, "--context", "1000000") as server:
        body = {"messages": [user("hello")], "max_tokens": 900_000, "ignore_eos": True, "stream": True}
        clients = [server.begin_post(CHAT, {**body, "winnow": {"session": f"{i}" * 100}}) for i in range(4)]
        wait_for(lambda: sum(slot["completion_tokens"] > 0 for slot in server.get("/slots")[1]) == 4)
        server.process.send_signal(signal.SIGTERM)
        wait_for(lambda: server.get("/health")[0] == 503)
        code, _ = server.end()
        for client in clients:
            client.close()
    assert code == 130


def test_sessions_belong_to_keys(model, where):
    with Server(model, "--sessions", where, "--api-key", "anna", "--api-key", "ben") as server:
        anna, ben = {"X_Api_Key": "anna"}, {"X_Api_Key": "ben"}
        for name in ("b", "a/ä", "c"):
            server.good(CHAT, {"messages": [user(name)], "max_tokens": 2, "winnow": {"session": name}}, **anna)
        assert [s["name"] for s in server.get("/v1/sessions", **anna)[1]["data"]] == ["a/ä", "b", "c"]
        assert server.get("/v1/sessions", **ben)[1]["data"] == []
        assert server.get("/v1/sessions/b", **ben)[0] == 404
        assert server.ask("DELETE", "/v1/sessions/b", **ben)[0] == 404
        assert server.get("/v1/sessions")[0] == 401
        server.good(CHAT, {"messages": [user("mine")], "max_tokens": 2, "winnow": {"session": "b"}}, **ben)
        assert server.get("/v1/sessions/b", **anna)[1]["messages"][0]["content"] == "b"
        assert server.get("/v1/sessions/a%2F%C3%A4", **anna)[1]["name"] == "a/ä"
        status, _, reply = server.ask("DELETE", "/v1/sessions/b", **anna)
        assert status == 200 and json.loads(reply)["deleted"]
        assert server.get("/v1/sessions/b", **anna)[0] == 404 and server.get("/v1/sessions/b", **ben)[0] == 200


def test_a_header_names_the_session_for_balancers(model, where):
    with Server(model, "--sessions", where) as server:
        for _ in range(2):
            server.good(CHAT, {"messages": [user("hello")], "max_tokens": 2}, Winnow_Session="by-header")
        assert len(server.get("/v1/sessions/by-header")[1]["messages"]) == 4
        body = {"messages": [user("hello")], "max_tokens": 2}
        server.good(CHAT, {**body, "winnow": {"session": "by-header"}}, Winnow_Session="by-header")
        assert len(server.get("/v1/sessions/by-header")[1]["messages"]) == 6
        for other in ("by-body", ""):
            status, reply = server.post(CHAT, {**body, "winnow": {"session": other}}, Winnow_Session="by-header")
            assert status == 400 and sentence(reply, "by-header", "Winnow-Session")["param"] == "winnow.session", "a balancer has gone by the header"
        assert [s["name"] for s in server.get("/v1/sessions")[1]["data"]] == ["by-header"]
        assert len(server.get("/v1/sessions/by-header")[1]["messages"]) == 6


def test_streams_end_when_the_turn_is_kept(model, where):
    with Server(model, "--sessions", where) as server:
        events = server.stream(CHAT, {"messages": [user("hello")], "max_tokens": 5, "ignore_eos": True, "winnow": {"session": "s"}})
        text = "".join(e["choices"][0]["delta"].get("content", "") for e in events if e["choices"])
        assert [m["content"] for m in server.get("/v1/sessions/s")[1]["messages"]] == ["hello", text]


@pytest.mark.parametrize(
    ("path", "fields", "field", "part"),
    [
        (CHAT, {"winnow": {"session": ""}}, "winnow.session", "has 0 bytes: give 1 to 200"),
        (CHAT, {"winnow": {"session": "x" * 201}}, "winnow.session", "201"),
        (CHAT, {"winnow": {"session": "a\nb"}}, "winnow.session", "control"),
        (CHAT, {"winnow": {"session": 7}}, "winnow.session", "string"),
        (CHAT, {"winnow": {"session": "s", "protocol": "question-aware"}}, "winnow.protocol", "question-agnostic"),
        (CHAT, {"n": 2, "winnow": {"session": "s"}}, "n", "2"),
        (CHAT, {"continue_final_message": True, "winnow": {"session": "s"}}, "continue_final_message", "new message"),
        (CHAT, {"add_generation_prompt": False, "winnow": {"session": "s"}}, "add_generation_prompt", "needs an answer"),
        (CHAT, {"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}], "winnow": {"session": "s"}}, "messages", "user"),
        (CHAT, {"messages": [{"role": "system", "content": "a"}], "winnow": {"session": "s"}}, "messages", "user"),
        ("/v1/completions", {"prompt": "x", "winnow": {"session": "s"}}, "winnow.session", "chat"),
    ],
)
def test_what_cannot_be_is_refused(model, where, path, fields, field, part):
    with Server(model, "--sessions", where) as server:
        status, reply = server.post(path, {"messages": [user("hello")], **fields})
        assert status == 400 and sentence(reply, part)["param"] == field
        status, reply = server.post(CHAT, {"messages": [user("hello")], "max_tokens": 1, "winnow": {"session": "s"}})
        assert status == 200, "a refused turn holds nothing"


def test_without_a_place_there_are_no_sessions(server):
    status, reply = server.post(CHAT, {"messages": [user("hello")], "winnow": {"session": "s"}})
    assert status == 501 and sentence(reply, "--sessions")["param"] == "winnow.session"
    assert server.get("/v1/sessions")[0] == 501


def test_a_store_of_something_else_is_refused_at_the_start(model, where, work):
    note = f"{work}/note.txt"
    with open(note, "w", encoding="utf-8") as file:
        file.write("a note")
    subprocess.run([WINNOW, "docs", "add", note, "-m", model, "--store", where], check=True, capture_output=True)
    result = subprocess.run([WINNOW, "serve", "-m", model, "--port", "0", "--sessions", where], capture_output=True, text=True, check=False)
    assert result.returncode == 1 and "something other" in result.stderr and len(result.stderr.splitlines()) == 1


@needs_redis
def test_a_redis_that_hangs_stops_sessions_alone(model):
    with Redis() as redis, Server(model, "--sessions", redis.url(0)) as server:
        redis.process.send_signal(signal.SIGSTOP)
        stuck = [server.connect() for _ in range(4)]
        for client in stuck:
            client.sendall(b"GET /v1/sessions HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert server.good(CHAT, {"messages": [user("hello")], "max_tokens": 2})
        assert server.good("/tokenize", {"content": "hello"})["count"] > 0
        redis.process.send_signal(signal.SIGCONT)
        assert all(client.makefile("rb").readline().split()[1] == b"200" for client in stuck)
        for client in stuck:
            client.close()


@needs_redis
def test_servers_share_sessions_by_redis_which_may_go_and_come_back(model):
    way = {"kv": "snapkv:window=8", "budget": "96"}
    with Redis("--appendonly", "yes") as redis:
        where = ["--sessions", redis.url(0), "--context", "100000"]
        with Server(model, *where) as one, Server(model, *where) as other:
            said = [first_message(), user(QUESTIONS[1]), user(QUESTIONS[2])]
            first = text_of(say(one, "tale", said[0], way))
            second = text_of(say(other, "tale", said[1], way))
            redis.stop()
            status, reply = one.post(CHAT, {"messages": [said[2]], "winnow": {**way, "session": "tale"}})
            assert status == 503 and sentence(reply, "the sessions in the server's store cannot be reached")
            assert redis.url(0) not in json.dumps(reply) and redis.url(0) in one.said(), "its place is for the log"
            redis.start()
            third = say(one, "tale", said[2], way)
            whole = [said[0], {"role": "assistant", "content": first}, said[1], {"role": "assistant", "content": second}, said[2]]
            assert text_of(third) == text_of(as_a_whole(other, whole, way))
