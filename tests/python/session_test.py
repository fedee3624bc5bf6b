# SPDX-License-Identifier: Apache-2.0
import json
import os
import pathlib
import subprocess
import threading

import numpy as np
import pytest

import winnow

SPECS = [
    "snapkv:window=8", "ada-snapkv:window=8", "pyramidkv:window=8", "streaming-llm", "h2o", "tova", "keydiff", "knorm", "random",
    "lagkv:lag=8", "expected-attention", "ada(snapkv:window=8)", "chunk(snapkv:window=8)", "sage-kv", "ahakv", "ems:window=8", "cam",
    "kvzip", "compactor", "refit(span(snapkv:window=8))", "decoding(snapkv:window=8)",
]


def test_positions_are_ascending_and_within_the_budget(session, text):
    [[cache]] = session.prefill(text, ["and then"], ("snapkv:window=8", 32))
    kept = cache.kept()
    assert len(kept) == session.model.info.n_layer
    for layer in kept:
        assert len(layer) == session.model.info.n_head_kv
        for head in layer:
            assert head.dtype == np.int32 and len(head) == 32 and not head.flags.writeable
            assert (np.diff(head) > 0).all() and head[-1] == cache.tokens_seen - 1


def test_bytes_are_those_of_the_entries(session, text):
    [[full, cache]] = session.prefill(text, ["and then"], ["full", ("knorm", 32)])
    info = session.model.info
    assert cache.bytes_held >= 32 * info.n_layer * info.n_head_kv * info.head_dim * 2 * 2
    assert cache.bytes_held < full.bytes_held


def test_logits_are_one_array_without_copies(session, text):
    [[a, b]] = session.prefill(text, ["and then"], ["full", ("knorm", 32)])
    assert a.logits.shape == (session.model.info.n_vocab,) and a.logits.dtype == np.float32
    assert np.shares_memory(a.logits, a.logits) and (a.logits == b.logits).all() and not a.logits.flags.writeable
    logits = a.logits
    expected = logits.copy()
    del a, b, session
    assert (logits == expected).all()


def test_steps_are_those_of_a_greedy_answer(session, text):
    [[cache]] = session.prefill(text, ["and then"], ("snapkv:window=8", 32))
    other = cache.clone()
    answer = winnow.answer(cache, max_tokens=8)
    tokens = [int(other.logits.argmax())]
    for _ in range(len(answer.tokens) - 1):
        tokens.append(int(session.step([other], tokens[-1:])[0].argmax()))
    assert tokens == answer.tokens


def test_a_batch_answers_as_each_cache_alone(session, text):
    questions = ["and then", "who", "why not"]
    rows = session.prefill(text, questions, ("ada-snapkv:window=8", 32))
    alone = [winnow.answer(row[0].clone(), max_tokens=6).tokens for row in rows]
    together = winnow.generate([row[0] for row in rows], max_tokens=6).answers()
    assert [answer.tokens for answer in together] == alone


def test_a_stream_gives_the_answer_piece_by_piece(session, text):
    [[cache]] = session.prefill(text, ["and then"], "full")
    whole = winnow.answer(cache.clone(), max_tokens=8)
    tokens = list(winnow.generate(cache, max_tokens=8))
    assert "".join(token.text for token in tokens) == whole.text
    assert [token.id for token in tokens if token.id is not None] == whole.tokens


def test_a_saved_cache_goes_on_alike(session, text, tmp_path):
    [cache] = session.read(text, ("knorm", 32))
    session.save(str(tmp_path / "a.kv"), cache)
    restored = session.load(str(tmp_path / "a.kv"))
    assert winnow.answer(restored, "and then", max_tokens=6) == winnow.answer(cache, "and then", max_tokens=6)


@pytest.mark.parametrize("spec", SPECS)
def test_the_command_keeps_and_answers_the_same(session, path, text, tmp_path, spec):
    file, dump = tmp_path / "long.txt", tmp_path / "kept.json"
    file.write_text(text)
    command = [os.environ["WINNOW"], "run", "-m", path, "-f", str(file), "-p", "and then", "--kv", spec, "--budget", "48", "-n", "6"]
    said = json.loads(subprocess.run([*command, "--dump-kept", str(dump), "--json"], check=True, capture_output=True).stdout)
    [[cache]] = session.prefill(text, ["and then"], (spec, 48))
    assert [[head.tolist() for head in layer] for layer in cache.kept()] == json.loads(dump.read_text())["layers"]
    assert winnow.answer(cache, max_tokens=6).text == said["answer"]


BAD = [
    (lambda s: s.read("text", "snapkw"), winnow.UsageError, "did you mean snapkv"),
    (lambda s: s.read("text", "snapkv"), winnow.UsageError, "budget"),
    (lambda s: s.read("text", ("snapkv", True)), winnow.UsageError, "True is not a budget"),
    (lambda s: s.read("text", ("snapkv", 1, 2, 3)), winnow.UsageError, "4 elements"),
    (lambda s: s.read("text", []), winnow.UsageError, "no cache"),
    (lambda s: s.read_tokens([1.5]), winnow.UsageError, "sequence of integers"),
    (lambda s: s.read_tokens(np.zeros((2, 2), np.int32)), winnow.UsageError, "sequence of integers"),
    (lambda s: s.read_tokens([10**30]), winnow.UsageError, "not a token"),
    (lambda s: s.read_tokens([10**6]), winnow.InputError, "1000000"),
    (lambda s: s.read_tokens([]), winnow.InputError, "empty|not a token"),
    (lambda s: s.prefill("text", [], "full"), winnow.UsageError, "no question"),
    (lambda s: s.load("/nowhere"), winnow.InputError, "/nowhere"),
    (lambda s: winnow.generate([]), winnow.UsageError, "no cache"),
    (lambda s: winnow.Model.load("/nowhere"), winnow.ModelError, "/nowhere"),
]


@pytest.mark.parametrize("call, kind, words", BAD, ids=range(len(BAD)))
def test_bad_input_is_an_exception_with_a_sentence(session, call, kind, words):
    with pytest.raises(kind, match=words) as error:
        call(session)
    assert isinstance(error.value, winnow.Error)


def test_a_closed_session_and_its_caches_say_so(model, text):
    with winnow.Session(model, threads=1) as session:
        [cache] = session.read(text)
    for call in (cache.kept, cache.clone, lambda: session.read(text), lambda: winnow.generate(cache)):
        with pytest.raises(winnow.UsageError, match="closed"):
            call()


def test_a_session_that_generates_does_nothing_else(session, text):
    [[cache, other]] = session.prefill(text, ["and then"], ["full", ("knorm", 32)])
    stream = winnow.generate(cache, max_tokens=8)
    next(stream)
    with pytest.raises(winnow.UsageError, match="generating"):
        session.read(text)
    with pytest.raises(winnow.UsageError, match="stream"):
        cache.kept()
    assert other.kept()
    stream.close()
    assert session.read(text) and cache.kept()


def test_tokens_are_those_that_were_read(session, text):
    [cache] = session.read_tokens(session.model.tokenize(text))
    assert (cache.tokens == session.model.tokenize(text)).all()
    assert session.model.pieces(cache.tokens).decode().replace("▁", " ").strip() == text


def test_arrays_are_read_only_and_share_memory(session, text):
    [[cache]] = session.prefill(text, ["who"], "full")
    for array in (cache.tokens, cache.logits, cache.kept()[0][0], session.model.tokenize(text)):
        assert not array.flags.writeable and not array.flags.owndata


def test_a_prompt_beyond_the_context_is_read_with_a_warning(session):
    context = session.model.info.context
    with pytest.warns(UserWarning, match=f"{context + 1} tokens, more than the model's context of {context}"):
        session.read_tokens([1] * (context + 1), ("streaming-llm", 8))


def resident():
    """Bytes of this process in memory."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_prefills_leave_nothing_behind(session, text):
    def read(times):
        for _ in range(times):
            [[cache]] = session.prefill(text, ["who"], ("snapkv:window=8", 32))
            cache.kept(), cache.logits, cache.tokens
        return resident()

    before = read(100)
    assert read(400) - before < 1 << 20


def test_threads_take_turns(session, text):
    expected = winnow.answer(session.prefill(text, ["q0"], ("knorm", 32))[0][0], max_tokens=4).tokens
    answers = []

    def work():
        [[cache]] = session.prefill(text, ["q0"], ("knorm", 32))
        token = int(cache.logits.argmax())
        answers.append(token)

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected[0]] * 6


def test_auto_goes_by_the_protocol_for_which_options_are_used(session, text):
    """Options do not know the protocol when they are made. A budget alone means auto."""
    named = {m["name"]: m["parts"] for m in json.loads(subprocess.run([os.environ["WINNOW"], "methods", "auto", "--json"], capture_output=True, check=True).stdout)}["auto"]
    assert winnow.CacheOptions().spec == "full" and winnow.CacheOptions(budget=32).spec == "auto"
    for protocol, spec in named.items():
        for options in (winnow.CacheOptions("auto", 32), winnow.CacheOptions(budget=32), ("auto", 32)):
            [[cache]] = session.prefill(text, ["and then"], options, protocol=protocol)
            assert cache.options.spec == spec
    assert session.read(text, winnow.CacheOptions(budget=32))[0].options.spec == named["question-agnostic"]


def test_a_prompt_that_begins_like_an_earlier_one_reads_only_the_rest(model, tmp_path):
    """Results are those of a session that keeps nothing; a folder outlives the session."""
    text = " ".join(f"word{i % 13}" for i in range(120))
    caches = [("snapkv:window=8", 40), ("h2o", 40), "full"]
    whole = winnow.Session(model, threads=2, prefix_memory=0)
    folder = str(tmp_path / "texts")
    for new in (True, False):
        session = winnow.Session(model, threads=2, prefix_memory=64 << 20, texts=folder)
        for questions in (["who"], ["who", "and then where"]):
            for cache in caches:
                for row, wanted in zip(session.prefill(text, questions, cache), whole.prefill(text, questions, cache)):
                    assert (row[0].logits == wanted[0].logits).all() and wanted[0].cached_tokens == 0
                    for layer, same in zip(row[0].kept(), wanted[0].kept()):
                        assert all((a == b).all() for a, b in zip(layer, same))
        again = session.prefill(text, ["why"], caches[0])[0][0]
        assert again.cached_tokens >= 64 and again.clone().cached_tokens == again.cached_tokens
        first = session.read(text + " and more", caches[0])[0]
        assert first.cached_tokens >= 64
        del session, row, again, first
    fresh = winnow.Session(model, threads=2, texts=folder)
    assert fresh.read(text, caches[0])[0].cached_tokens >= 64, "known from the folder"
    with pytest.raises(winnow.UsageError):
        winnow.Session(model, prefix_memory=0, texts=folder)
