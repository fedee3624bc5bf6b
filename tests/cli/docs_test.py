# SPDX-License-Identifier: Apache-2.0
"""`winnow docs`: storing documents, and errors."""

import json
import os
import pathlib
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time

import pytest
from program import PATIENCE, WINNOW
from redis_server import Redis, needs_redis

FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="winnow-docs-"))


@pytest.fixture(scope="module", autouse=True)
def folder():
    yield FOLDER
    shutil.rmtree(FOLDER)


@pytest.fixture(params=["folder", pytest.param("redis", marks=needs_redis)])
def store(request, tmp_path):
    """An empty store of each kind."""
    if request.param == "folder":
        yield tmp_path / "store"
    else:
        with Redis() as redis:
            yield redis.url(0)


def environment():
    return os.environ | {"XDG_DATA_HOME": str(FOLDER / "data")}


def docs(*arguments, code=0, **options):
    """Returns stdout and stderr of a command that must succeed."""
    result = subprocess.run([WINNOW, "docs", *map(str, arguments)], capture_output=True, text=True, errors="replace", timeout=PATIENCE, env=environment(), **options)
    assert result.returncode == code, (arguments, result.returncode, result.stdout, result.stderr)
    return result.stdout, result.stderr


def refused(*arguments, says, code=1, **options):
    errors = docs(*arguments, code=code, **options)[1]
    for part in says if isinstance(says, tuple) else (says,):
        assert part in errors, (arguments, part, errors)
    assert "\n" not in errors.strip() or len(errors.strip().splitlines()) <= 2, errors


def text(name, words, seed=0):
    path = FOLDER / name
    random.seed(seed)
    path.write_text(" ".join(random.choice(["one", "two", "three", "four"]) for _ in range(words)))
    return path


def add(store, model, *files, **options):
    return json.loads(docs("add", "-m", model, "--threads", 1, "--store", store, "--json", *files, **options)[0])["documents"]


def listed(store):
    out, _ = docs("list", "--store", store, "--json")
    assert out.endswith("}\n") and not out.endswith("\n\n")
    return {d["name"]: d for d in json.loads(out)["documents"]}


def test_the_life_of_a_document(store, model):
    a, b = text("a.txt", 25), text("b.txt", 32, 1)
    first = add(store, model, "--tag", "x", "--tag", "y", a, b)
    assert [(d["name"], d["outcome"], d["was_read"], d["tags"]) for d in first] == [(n, "added", True, ["x", "y"]) for n in ("a.txt", "b.txt")], first
    assert add(store, model, a)[0]["outcome"] == "unchanged"
    text("a.txt", 33, 2)
    assert add(store, model, a)[0]["outcome"] == "replaced"
    small = add(store, model, b, "--name", "small", "--kv", "snapkv:window=8", "--budget", "20%", "--kv-type", "q8_0")[0]
    assert small["spec"] == "snapkv:window=8" and small["budget"] == "20%" and small["kv_type"] == "q8_0"
    whole = listed(store)
    assert sorted(whole) == ["a.txt", "b.txt", "small"] and small["bytes"] < whole["b.txt"]["bytes"] / 2, whole
    assert whole["b.txt"]["model"]["hash"] and len(whole["b.txt"]["id"]) == 32

    out, _ = docs("list", "--store", store)
    assert out.count("\n") == 3 and "snapkv:window=8 @ 20%, q8_0" in out and "[x, y]" in out, out
    assert docs("list", "--store", store, "--tag", "x")[0].startswith("b.txt"), "a.txt was replaced without a tag"
    out, _ = docs("show", "b.txt", "--store", store)
    assert "tiny" in out and whole["b.txt"]["id"] in out and "tags x, y" in out, out
    refused("show", "c", "--store", store, says="there is no document 'c': there are 'a.txt', 'b.txt', 'small'")
    refused("show", "b.tx", "--store", store, says="there is no document 'b.tx': did you mean 'b.txt'? There are 'a.txt', ")

    docs("export", "b.txt", "-o", FOLDER / "b.doc", "--store", store)
    docs("rm", "b.txt", "--store", store)
    assert sorted(listed(store)) == ["a.txt", "small"]
    docs("import", FOLDER / "b.doc", "--name", "back", "--store", store)
    assert listed(store)["back"]["id"] == whole["b.txt"]["id"]
    assert "3 documents in" in docs("verify", "--store", store)[0]
    removed = json.loads(docs("gc", "--max-bytes", listed(store)["back"]["bytes"], "--store", store, "--json")[0])["removed"]
    assert [d["name"] for d in removed] == ["a.txt", "small"], removed
    docs("gc", "--max-bytes", "0", "--store", store)
    assert not listed(store)


def test_a_store_that_is_not_there(model):
    store = FOLDER / "absent"
    refused("list", "--store", store, says=f"there are no documents in {store}")
    assert not store.exists()


@pytest.fixture
def good():
    return text("good.txt", 10)


def test_a_document_that_does_not_fit(model, good, tmp_path):
    store, long = tmp_path / "store", text("long.txt", 200)
    refused("add", "-m", model, "--store", store, long, says=("long.txt has", "tokens, more than the model's context of 256"))
    out, errors = docs("add", "-m", model, "--store", store, long, good, code=1)
    assert "added good.txt" in out and "1 of 2 documents could not be added" in errors and "the model's context of 256" in errors, (out, errors)


def test_wrong_usage(model, good, tmp_path):
    store = tmp_path / "store"
    add(store, model, good)
    refused("add", "-m", model, "--store", store, good, good.parent / "long.txt", "--name", "n", says="--name n cannot name 2 files", code=2)
    refused("add", "-m", model, "--store", store, good, good, says="two files are called good.txt", code=2)
    refused("add", "-m", model, "--store", store, "-", says="a document from stdin needs a name", code=2)
    refused("add", "-m", model, "--store", store, good, "--kv", "snapkv", says="snapkv needs a budget", code=2)
    refused("add", "-m", model, "--store", good, good, says="it is not a folder", code=2)
    refused("add", "-m", model, "--store", good.parent, good, says="it has other files", code=2)
    refused("add", "-m", model, "--store", store, FOLDER / "none.txt", says="none.txt")
    refused("gc", "--store", store, "--max-bytes", "10%", says="not a size", code=2)
    refused("import", "--store", store, good, says="is not an exported document")
    refused("import", "--store", FOLDER / "none", good, says="is not an exported document")
    refused("add", "-m", good, "--store", FOLDER / "none", good, says="good.txt")
    assert not (FOLDER / "none").exists(), "nothing that could be kept was there"


def test_a_place_that_cannot_be(model, good):
    refused("list", "--store", "foo://user:secret@host", says="documents cannot be stored at foo://", code=2)
    refused("add", "-m", model, "--store", "foo://host", good, says="documents cannot be stored at foo://", code=2, cwd=FOLDER)
    assert not (FOLDER / "foo:").exists()
    refused("list", "--store", "redis://127.0.0.1:1", says="cannot be reached")


@pytest.fixture
def two(model, good, tmp_path):
    """A store in a folder, with two documents."""
    store = tmp_path / "two"
    add(store, model, good)
    docs("add", "-m", model, "--store", store, "-", "--name", "stdin", input="some words")
    return store


def test_a_document_from_stdin(two):
    assert sorted(listed(two)) == ["good.txt", "stdin"]


def test_a_damaged_folder(model, good, two):
    store, records = two, two / "records"
    whole = records.read_bytes()
    for damaged, why in ((b"", "only 0 are left"), (whole[: len(whole) // 2], ""), (whole[:40] + bytes([whole[40] ^ 1]) + whole[41:], "the checksum of its index is")):
        records.write_bytes(damaged)
        for command in (["verify"], ["list"], ["rm", "stdin"], ["add", "-m", model, good]):
            refused(*command, "--store", store, says=(f"{records} is damaged: ", why))
    records.write_bytes(whole)
    value = max((store / "values").iterdir(), key=lambda file: file.stat().st_size)
    whole = value.read_bytes()
    value.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    out, errors = docs("verify", "--store", store, code=1)
    assert "is damaged: the checksum of" in out and "1 thing is damaged" in errors, (out, errors)
    value.unlink()
    out, errors = docs("verify", "--store", store, code=1)
    assert "1 thing is damaged" in errors, (out, errors)


def test_a_store_of_an_earlier_version(model, good, tmp_path):
    (tmp_path / "data.mdb").write_bytes(bytes(8192))
    for command in (["list"], ["verify"], ["add", "-m", model, good]):
        refused(*command, "--store", tmp_path, says=f"the documents in {tmp_path} (data.mdb) were stored by an earlier version, and this one cannot read them: name another folder, and store them again")
    assert [file.name for file in tmp_path.iterdir()] == ["data.mdb"]


def test_names_are_no_paths(store, model):
    names = ["../above", "/etc/passwd", ".", "..", "a/b", "%2e%2e", "é" * 100, "'; rm -rf *", "x" * 200]
    add(store, model, text("named.txt", 20), "--name", names[0])
    for name in names[1:]:
        add(store, model, text("named.txt", 20), "--name", name)
    assert set(listed(store)) == set(names)
    docs("verify", "--store", store)
    docs("rm", "--store", store, *names)
    assert not listed(store)


def ask(store, model, *arguments, **options):
    few = ["-m", model, "--threads", 1, "--store", store, "--raw", "-n", 8, "--ignore-eos"]
    return json.loads(docs("ask", *few, "--json", *arguments, **options)[0])


def test_asking(store, model):
    files = [text(f"ask{i}.txt", 30, i) for i in range(3)]
    tokens = {d["name"]: d["tokens"] for d in add(store, model, "--tag", "t", *files)}
    names = [path.name for path in files]

    # SentencePiece puts a space before each separate text, such as a question after documents.
    alone = ask(store, model, "--doc", names[0], "--method", "reuse", "-p", "three")
    run = [WINNOW, "run", "-m", model, "--threads", "1", "--raw", "-n", "8", "--ignore-eos", "-f", files[0], "-p", " three", "--json"]
    plain = json.loads(subprocess.run(run, capture_output=True, text=True, errors="replace", check=True, timeout=PATIENCE).stdout)
    assert alone["answer"] == plain["answer"], (alone["answer"], plain["answer"])
    assert alone["tokens"] == plain["tokens"]

    for method in ("samkv", "samkv:update=overwrite", "recompute", "reuse", "epic", "cacheblend"):
        one = ask(store, model, "--doc", *names, "--method", method, "-p", " three")
        assert one["spec"] == method and one["spec_full"].startswith(method.split(":")[0]) and one["documents"] == names, one
        assert one["tokens"]["prompt"] > sum(tokens.values()) and one["tokens"]["generated"] == 8
        assert 0 < one["sequence_ratio"] <= 1 and 0 <= one["recompute_ratio"] <= 1 and one["stages_ms"], one
        blocks = one["kept_blocks"]
        assert len(blocks) == one["model"]["n_layer"] and all(len(layer) == 3 and all(kept[0] == 0 for kept in layer) for layer in blocks)
    assert ask(store, model, "--doc", *names, "--method", "recompute", "-p", " three")["recompute_ratio"] == 1
    assert ask(store, model, "--all", "--method", "multi-infllm", "--budget", 120, "-p", " three")["budget"] == "120"

    both = ask(store, model, "--tag", "t", "-p", " three", "-p", " four")
    each = [ask(store, model, "--tag", "t", "-p", question)["answer"] for question in (" three", " four")]
    assert [a["answer"] for a in both["answers"]] == each and both["documents"] == names

    found = json.loads(docs("calibrate", "--all", "--store", store, "--json")[0])
    assert found["documents"] == names and found["long_enough"] == 0 and found["scores"] == [0, 0] and found["deciding"] == 1, found
    assert len(found["exponents"]) == len(names) and all(len(layers) == 2 for layers in found["exponents"]), found
    out, _ = docs("calibrate", "--doc", names[1], "--store", store)
    assert out.startswith("1 document, of which 0 are long enough to count. In so many of these each of 2 layers finds") and "\n0 0\nAsk with --method samkv:deciding=1, the paper's share of the layers" in out, out
    assert ask(store, model, "--all", "--method", found["method"], "-p", " three")["spec"] == "samkv:deciding=1"
    refused("calibrate", "--store", store, says="give --doc NAME, --tag TAG or --all", code=2)

    out, errors = docs("ask", "-m", model, "--threads", 1, "--store", store, "--raw", "-n", 4, "--ignore-eos", "--all", "-p", " three")
    assert "samkv over 3 documents" in errors and out.strip(), (out, errors)
    common = ["ask", "-m", model, "--store", store, "-p", "x"]
    refused(*common, says="give --doc NAME, --tag TAG or --all", code=2)
    refused(*common, "--doc", "ask9.txt", says=("ask9.txt", "ask0.txt"))
    refused(*common, "--tag", "none", says="no document in")
    refused(*common, "--all", "--method", "samkw", says="samkv", code=2)
    refused(*common, "--all", "--budget", 50, says="budget", code=2)
    refused(*common, "--all", "--method", "multi-infllm", says="budget", code=2)
    add(store, model, "--name", "small", "--kv", "snapkv:window=8", "--budget", "50%", files[0])
    refused(*common, "--raw", "--doc", names[1], "small", says=("document 2 of 2", "snapkv:window=8", "reuse"), code=2)
    assert ask(store, model, "--doc", names[1], "small", "--method", "reuse", "-p", " three")["sequence_ratio"] < 0.9
    docs("rm", "--store", store, *names, "small")


def test_a_damaged_block(model):
    """One changed byte of a value: an error, or the document is recomputed from its tokens, with a note in the
    answer."""
    store = FOLDER / "damaged"
    files = [text(f"damaged{i}.txt", 30, 10 + i) for i in range(3)]
    add(store, model, *files)
    names = [path.name for path in files]
    before = ask(store, model, "--doc", *names, "-p", " three")
    assert before["recomputed_documents"] == []
    docs("export", names[1], "-o", FOLDER / "damaged.doc", "--store", store)
    last_rows = (FOLDER / "damaged.doc").read_bytes()[-8 - 96 : -8]  # the end of the last layer, before its checksum
    (value,) = (file for file in (store / "values").iterdir() if file.read_bytes().endswith(last_rows))
    whole = value.read_bytes()
    value.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))

    common = ["ask", "-m", model, "--threads", 1, "--store", store, "--raw", "-n", 8, "--ignore-eos", "--doc", *names, "-p", " three"]
    damage = f"layer 1 of the document {names[1]} in {store} is damaged: the checksum of block"
    refused(*common, says=damage)
    refused(*common, "--unreadable", "ignore", says="--unreadable", code=2)
    for quiet in ([], ["-q"]):
        out, errors = docs(*common, "--unreadable", "recompute", "--json", *quiet)
        after = json.loads(out)
        assert after["answer"] == before["answer"] and after["kept_blocks"] == before["kept_blocks"]
        assert [d["name"] for d in after["recomputed_documents"]] == [names[1]] and damage in after["recomputed_documents"][0]["why"], after
        assert "recompute" in after["stages_ms"] and f"{names[1]} could not be read and was recomputed from its tokens" in errors, errors


class FailingProxy:
    """A proxy of a Redis server that kills the server and itself at the request for a document's second layer."""

    def __init__(self, redis):
        self.redis, self.open, self.dead = redis, [], False
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"redis://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                client = self.listener.accept()[0]
                server = socket.create_connection(("127.0.0.1", self.redis.port))
                self.open += [client, server]
                threading.Thread(target=self.pump, args=(client, server), daemon=True).start()
                threading.Thread(target=self.pump, args=(server, client), daemon=True).start()
        except OSError:
            return

    def pump(self, source, target):
        seen = b""
        try:
            while part := source.recv(1 << 16):
                seen = seen[-100:] + part
                if re.search(rb"GETRANGE\r\n\$\d+\r\nwinnow:value:[0-9a-f]{16}0001\r", seen):
                    return self.die()
                target.sendall(part)
        except OSError:
            return

    def die(self):
        self.redis.process.kill()
        self.dead = True
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for connection in self.open:
            connection.shutdown(socket.SHUT_RDWR)


@needs_redis
def test_a_server_that_dies(model):
    """A Redis server is killed in the middle of an ask: an error, or the documents are recomputed for this question and
    the next."""
    files = [text(f"gone{i}.txt", 30, 20 + i) for i in range(3)]
    names = [path.name for path in files]
    asked = ["--doc", *names, "-p", " three", "-p", " four"]
    folder = FOLDER / "not-gone"
    add(folder, model, *files)
    expected = [a["answer"] for a in ask(folder, model, *asked)["answers"]]
    for how in ("error", "recompute"):
        with Redis() as redis:
            add(redis.url(0), model, *files)
            proxy = FailingProxy(redis)
            common = ["ask", "-m", model, "--threads", 1, "--store", proxy.url, "--raw", "-n", 8, "--ignore-eos", "--json", *asked]
            gone = f"the documents in {proxy.url} cannot be reached"
            if how == "error":
                out, errors = docs(*common, code=1)
                assert out == "" and gone in errors and len(errors.strip().splitlines()) == 1, (out, errors)
            else:
                out, errors = docs(*common, "--unreadable", "recompute")
                one = json.loads(out)
                assert [a["answer"] for a in one["answers"]] == expected
                assert [d["name"] for d in one["recomputed_documents"]] == names and gone in one["recomputed_documents"][0]["why"], one
                assert errors.count("was recomputed from its tokens") == 3, errors
            assert proxy.dead


def test_the_default_place(model):
    refused("list", says=f"there are no documents in {FOLDER}/data/winnow/documents")
    docs("add", "-m", model, text("good.txt", 10))
    assert (FOLDER / "data/winnow/documents/records").exists() and "good.txt" in docs("list")[0]


def test_a_full_disk(model):
    """No file may grow beyond a size that a long document needs: acknowledged documents stay, and the store remains
    usable."""
    store = FOLDER / "full"
    add(store, model, text("first.txt", 10))
    most = max(file.stat().st_size for file in (store / "values").iterdir()) * 2

    def limited():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    before = sorted(file.name for file in store.rglob("*"))
    refused("add", "-m", model, "--threads", 1, "--store", store, text("long.txt", 33), says=("cannot add", f"to the documents in {store}"), preexec_fn=limited)
    assert sorted(file.name for file in store.rglob("*")) == before
    add(store, model, text("more.txt", 10, 1), preexec_fn=limited)
    docs("verify", "--store", store)
    add(store, model, text("long.txt", 33))
    assert sorted(listed(store)) == ["first.txt", "long.txt", "more.txt"]


def start_add(store, model, *files):
    return subprocess.Popen([WINNOW, "docs", "add", "-m", model, "--threads", "1", "-q", "--store", store, *files], env=environment(),
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)  # fmt: skip


def test_kills(store, model):
    """kill -9 at twenty or more moments while adding: the store is intact after each, and acknowledged documents are
    there."""
    files = [text(f"kill{i}.txt", 30, 100 + i) for i in range(30)]
    add(store, model, files[0])
    begin = time.monotonic()
    for i in range(3):
        assert start_add(store, model, *files[1:]).wait(PATIENCE) == 0
        docs("rm", "--store", store, *(f.name for f in files[1:]))
    whole = (time.monotonic() - begin) / 3
    counts, kills = set(), 0
    while kills < 20 or len(counts) <= 3:
        assert kills < 400, f"killed at the same moments only: {counts}"
        process = start_add(store, model, *files)
        time.sleep(whole * random.random())
        process.kill()
        kills += 1
        process.wait()
        docs("verify", "--store", store)
        there = listed(store)
        assert files[0].name in there
        counts.add(len(there))
        more = [name for name in there if name != files[0].name]
        if more:
            docs("rm", "--store", store, *more)


def test_concurrency(store, model):
    """Processes add the same and different documents while others remove some: no document is torn, and no other
    document is lost."""
    shared = [text(f"shared{i}.txt", 30, 200 + i) for i in range(3)]
    adders = [start_add(store, model, *shared, text(f"own{i}.txt", 30, 300 + i)) for i in range(4)]
    gone = text("gone.txt", 30, 400)
    for _ in range(5):
        add(store, model, gone)
        removers = [subprocess.Popen([WINNOW, "docs", "rm", "gone.txt", "--store", store], env=environment(), stderr=subprocess.PIPE, text=True) for _ in range(2)]
        asker = subprocess.run([WINNOW, "docs", "ask", "-m", model, "--threads", "1", "--raw", "-n", "1", "--store", store, "--doc", "gone.txt", "-p", " three"], capture_output=True,
                               text=True, env=environment())  # fmt: skip
        assert asker.returncode == 0 or "there is no document 'gone.txt'" in asker.stderr or "is gone" in asker.stderr, asker.stderr
        reader = subprocess.run([WINNOW, "docs", "export", "gone.txt", "-o", FOLDER / "gone.doc", "--store", store], capture_output=True, text=True, env=environment())
        assert reader.returncode == 0 or "there is no document 'gone.txt'" in reader.stderr or "is gone" in reader.stderr, reader.stderr
        codes = []
        for process in removers:
            errors = process.communicate()[1]
            codes.append(process.returncode)
            assert process.returncode == 0 or "there is no document 'gone.txt'" in errors, errors
        assert sorted(codes) == [0, 1], "one of the two has removed it"
    for process in adders:
        errors = process.communicate()[1]
        assert process.returncode == 0, errors
    assert {f.name for f in shared} | {f"own{i}.txt" for i in range(4)} <= set(listed(store))
    docs("verify", "--store", store)


@needs_redis
def test_nobody_reads_a_server_s_password(model, monkeypatch):
    with Redis("--requirepass", "secret") as redis:
        where = redis.url(0).replace("redis://", "redis://:secret@")
        out, errors = docs("add", "-m", model, "--threads", 1, "--json", "--store", where, text("a.txt", 25))
        assert json.loads(out)["store"] == redis.url(0) and "secret" not in out + errors, (out, errors)
        assert listed(where)["a.txt"]
        monkeypatch.setenv("WINNOW_REDIS_PASSWORD", "secret")
        assert listed(redis.url(0))["a.txt"]
        monkeypatch.delenv("WINNOW_REDIS_PASSWORD")
        refused("list", "--store", redis.url(0), says="NOAUTH")
        out, errors = docs("list", "--store", where.replace("secret", "s3cret"), code=1)
        assert "refuses the password" in errors and "s3cret" not in errors, errors


@needs_redis
def test_a_server_that_is_gone():
    with Redis() as redis:
        pass
    refused("list", "--store", redis.url(0), says="cannot be reached")
