# SPDX-License-Identifier: Apache-2.0
"""Models from a hub, `-hf USER/REPO[:QUANT]`: downloads, the cache, refusals, and resumed downloads."""

import json
import os
import pathlib
import pty
import signal
import subprocess

import pytest
from fake_hub import git_blob, sha256
from program import PATIENCE, WINNOW, check_refusal, make_tiny_gguf
from service import Server

NAME = "some-one/Tiny.Model-GGUF"
TOKEN = "hf_" + 34 * "a"


@pytest.fixture(scope="module")
def models(work):
    """The bytes of three different models."""
    return [pathlib.Path(make_tiny_gguf(f"{work}/{name}.gguf", name)).read_bytes() for name in ("llama", "qwen2", "phi3")]


@pytest.fixture
def model(hub, models):
    """The bytes of the only model in the repository NAME."""
    hub.put(NAME, {"README.md": b"words", "tiny-Q4_K_M.gguf": models[0]})
    return models[0]


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "hf/hub/models--some-one--Tiny.Model-GGUF"


def winnow(*arguments, **options):
    return subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE, stdin=subprocess.DEVNULL, **options)


def inspect(name=NAME, *more):
    return winnow("inspect", "-hf", name, "--json", *more)


def check_failure(result, *parts):
    """Checks exit code 1 and one sentence, possibly after the note that a download begins."""
    said = [line for line in result.stderr.splitlines(keepends=True) if not line.startswith("info: downloading ")]
    check_refusal(subprocess.CompletedProcess(result.args, result.returncode, result.stdout, "".join(said)), 1, *parts)


def path_of(result):
    assert result.returncode == 0, result.stderr
    return pathlib.Path(json.loads(result.stdout)["path"])


def partial(cache, data):
    return cache / "blobs" / f"{sha256(data)}.downloadInProgress"


def test_a_model_is_downloaded_into_the_cache_as_the_hubs_client_lays_it_out(hub, model, cache):
    result = inspect()
    path = path_of(result)
    assert path == cache / "snapshots" / hub.commit(NAME) / "tiny-Q4_K_M.gguf"
    assert path.read_bytes() == model
    assert path.is_symlink() and os.readlink(path) == f"../../blobs/{sha256(model)}"
    assert (cache / "refs/main").read_text() == hub.commit(NAME)
    assert sorted(p.name for p in (cache / "blobs").iterdir()) == [sha256(model)]
    assert "\r" not in result.stderr and "%" not in result.stderr  # stderr is a pipe


def test_what_is_in_the_cache_is_not_downloaded_again(hub, model):
    path = path_of(inspect())
    assert path_of(inspect()) == path
    assert len(hub.downloads()) == 1


def test_without_a_network_the_cache_is_used_and_that_is_said(hub, model):
    path = path_of(inspect())
    hub.stop()
    result = inspect()
    assert path_of(result) == path
    assert f"cannot reach {hub.address}" in result.stderr


def test_offline_nothing_is_asked(hub, model):
    path = path_of(inspect())
    asked = len(hub.requests)
    result = inspect(NAME, "--offline")
    assert path_of(result) == path and not result.stderr
    assert len(hub.requests) == asked


def test_without_a_network_and_without_a_cache_there_is_no_model(hub, model, cache):
    hub.stop()
    check_failure(inspect(), f"cannot reach {hub.address}", str(cache))
    check_failure(inspect(NAME, "--offline"), str(cache))


@pytest.mark.parametrize(
    ("quant", "file"),
    [("", "b-Q4_K_M.gguf"), (":q8_0", "sub/c-Q8_0.gguf"), (":IQ2_XS", "a.IQ2_XS.gguf")],
)
def test_a_quant_is_chosen(hub, models, quant, file):
    hub.put(NAME, {"a.IQ2_XS.gguf": models[0], "b-Q4_K_M.gguf": models[1], "sub/c-Q8_0.gguf": models[2]})
    path = path_of(inspect(NAME + quant))
    assert str(path).endswith("/" + file)
    assert len(hub.downloads()) == 1


def test_a_quant_that_is_not_there_is_refused_with_those_that_are(hub, models, cache):
    hub.put(NAME, {"a.IQ2_XS.gguf": models[0], "b-Q4_K_M.gguf": models[1], "mmproj-F16.gguf": models[2]})
    result = inspect(NAME + ":Q5_0")
    check_failure(result, "no quant Q5_0", "IQ2_XS, Q4_K_M")
    assert "F16" not in result.stderr and not (cache / "blobs").exists()


def test_a_repository_without_models_is_refused(hub):
    hub.put(NAME, {"model.safetensors": b"words"})
    check_failure(inspect(), NAME, "no GGUF file")


def test_a_small_file_has_the_checksum_of_git(hub, model):
    hub.changed_tree = lambda tree: [{k: v for k, v in entry.items() if k != "lfs"} | {"oid": git_blob(model)} for entry in tree]
    assert path_of(inspect()).read_bytes() == model


def test_all_parts_of_a_model_are_downloaded(hub, models, cache):
    """The parts are of three different models, so only their download is tested; opening parts is tested elsewhere."""
    names = [f"big-Q8_0-0000{i}-of-00003.gguf" for i in (1, 2, 3)]
    hub.put(NAME, dict(zip(names, models)))
    check = inspect()
    assert check.returncode == 0, check.stderr  # the first file is a complete model
    assert sorted(p.name for p in (cache / "snapshots" / hub.commit(NAME)).iterdir()) == names
    assert len(hub.downloads()) == 3


def test_a_part_that_is_missing_is_named_before_anything_is_downloaded(hub, models):
    hub.put(NAME, {f"big-Q8_0-0000{i}-of-00003.gguf": models[i] for i in (1, 2)})
    check_failure(inspect(), "2 of the 3 parts")
    assert not hub.downloads()


def test_a_connection_that_breaks_is_taken_up_where_it_broke(hub, model):
    hub.cuts = [len(model) // 2]
    assert path_of(inspect()).read_bytes() == model
    assert [first for _, first in hub.downloads()] == [0, len(model) // 2]


def test_a_download_that_failed_goes_on_with_the_next_command(hub, model, cache):
    at = len(model) // 3
    hub.cuts = [at, at, at]
    check_failure(inspect(), f"at {at} of {len(model)} bytes")
    assert partial(cache, model).stat().st_size == at
    assert path_of(inspect()).read_bytes() == model
    assert [first for _, first in hub.downloads()][-1] == at


def test_a_file_that_lacks_only_its_name_is_finished(hub, model, cache):
    partial(cache, model).parent.mkdir(parents=True)
    partial(cache, model).write_bytes(model)
    assert path_of(inspect()).read_bytes() == model


def test_a_partial_file_that_is_too_long_begins_anew(hub, model, cache):
    partial(cache, model).parent.mkdir(parents=True)
    partial(cache, model).write_bytes(model + b"more")
    assert path_of(inspect()).read_bytes() == model


def test_ctrl_c_ends_at_once_and_the_next_command_goes_on(hub, model, cache):
    at = len(model) // 2
    hub.cuts = [at]
    hub.go_on.clear()
    process = subprocess.Popen([WINNOW, "inspect", "-hf", NAME], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert hub.reached.wait(PATIENCE)
    while not partial(cache, model).exists() or partial(cache, model).stat().st_size == 0:
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == -signal.SIGINT
    have = partial(cache, model).stat().st_size
    assert 0 < have <= at
    hub.go_on.set()
    assert path_of(inspect()).read_bytes() == model
    assert [first for _, first in hub.downloads()] == [0, have]


def test_a_wrong_checksum_is_refused_and_leaves_nothing(hub, model, cache):
    wrong = model[:-1] + bytes([model[-1] ^ 1])
    hub.sent[sha256(model)] = wrong
    check_failure(inspect(), sha256(wrong), sha256(model), "removed")
    assert not list((cache / "blobs").iterdir()) and not (cache / "snapshots").exists()
    hub.sent[sha256(model)] = model
    assert path_of(inspect()).read_bytes() == model


def test_a_file_of_others_with_a_wrong_checksum_stays(hub, model, cache):
    blob = cache / "blobs" / sha256(model)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"not this")
    check_failure(inspect(), str(blob), sha256(b"not this"))
    assert blob.read_bytes() == b"not this" and not hub.downloads()


def test_a_file_without_a_checksum_is_not_downloaded(hub, model):
    hub.changed_tree = lambda tree: [{k: v for k, v in entry.items() if k not in ("lfs", "oid")} for entry in tree]
    check_failure(inspect(), "no checksum")
    assert not hub.downloads()


def test_a_disk_without_room_is_said_before_the_download(hub, model):
    hub.said_sizes[sha256(model)] = 1 << 60
    check_failure(inspect(), "are free")
    assert not hub.downloads()


def test_a_private_repository_needs_its_token(hub, model, monkeypatch):
    hub.private[NAME] = TOKEN
    check_failure(inspect(), NAME, "HF_TOKEN")
    monkeypatch.setenv("HF_TOKEN", TOKEN[:-1] + "b")
    check_failure(inspect(), "rejects the token")
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    path_of(inspect())


def test_a_token_that_is_not_sent_is_named(hub, model, monkeypatch):
    """llama.cpp sends only tokens that look like Hugging Face's."""
    hub.private[NAME] = "secret"
    monkeypatch.setenv("HF_TOKEN", "secret")
    check_failure(inspect(), "rejects the token", "hf_")


def test_a_token_goes_to_the_hub_alone(hub, model, monkeypatch):
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    path_of(inspect())
    with_token = {path.count("/") == 1 for _, path, headers in hub.requests if "Authorization" in headers}
    assert with_token == {False}  # the file server's paths have one part
    assert hub.downloads()


@pytest.mark.parametrize(("status", "parts"), [(401, ["HF_TOKEN"]), (403, ["HF_TOKEN"]), (404, ["no repository"]), (500, ["500"])])
def test_refusals_of_the_hub_are_told_apart(hub, model, status, parts):
    hub.statuses[NAME] = status
    check_failure(inspect(), NAME, hub.address, *parts)


def test_a_file_that_is_refused_is_said(hub, model):
    hub.statuses["tiny-Q4_K_M.gguf"] = 403  # gated: its list is public
    check_failure(inspect(), NAME, "HF_TOKEN")


def test_a_repository_that_is_not_there_any_more_comes_from_the_cache(hub, model):
    path = path_of(inspect())
    hub.statuses[NAME] = 404
    result = inspect()
    assert path_of(result) == path and "no repository" in result.stderr


def test_an_update_that_broke_leaves_the_model_before_it_to_use(hub, models, model):
    before = path_of(inspect())
    hub.put(NAME, {"tiny-Q4_K_M.gguf": models[1]})
    hub.statuses["tiny-Q4_K_M.gguf"] = 500
    check_failure(inspect(), "500")
    assert path_of(inspect(NAME, "--offline")) == before
    hub.statuses.clear()
    after = path_of(inspect())
    assert after.read_bytes() == models[1] and before.read_bytes() == model
    assert path_of(inspect(NAME, "--offline")) == after


def test_names_that_lead_out_of_the_cache_are_left_out(hub, model, tmp_path):
    hub.changed_tree = lambda tree: [{**entry, "path": "../../../../../out-Q4_K_M.gguf"} for entry in tree if "lfs" in entry]
    assert inspect().returncode == 1
    assert not list(tmp_path.rglob("*out-Q4_K_M*"))


@pytest.mark.parametrize("name", ["-" * 200_000, "a." * 100_000, "x" * 300_000 + "-00001-of-00002"], ids=["dashes", "dots", "long"])
def test_names_of_any_length_are_read(hub, model, name):
    entry = {"type": "file", "path": name + ".gguf"}  # an entry with a checksum would be looked up in the cache
    hub.changed_tree = lambda tree: [entry, *tree]
    assert path_of(inspect(NAME + ":Q4_K_M")).read_bytes() == model
    check_failure(inspect(NAME + ":Q9"), "Q4_K_M")


@pytest.mark.parametrize("answer", [b"", b"{}", b"[1]", b"null", b'{"branches": [{"name": 1}]}', b"[" * 100_000])
def test_answers_that_are_none_are_refused(hub, model, answer):
    hub.changed_tree = lambda tree: answer
    check_failure(inspect(), NAME)


def test_two_processes_download_once(hub, model):
    hub.cuts = [len(model) // 2]
    hub.go_on.clear()
    both = [subprocess.Popen([WINNOW, "inspect", "-hf", NAME, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE) for _ in range(2)]
    assert hub.reached.wait(PATIENCE)
    hub.go_on.set()
    assert [process.communicate(timeout=PATIENCE)[0] != b"" for process in both] == [True, True]
    assert [first for _, first in hub.downloads()] == [0, len(model) // 2]


def shown_on_terminal(*arguments):
    """The bytes that a successful command writes to a terminal on stderr."""
    ours, its = pty.openpty()
    process = subprocess.Popen([WINNOW, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=its)
    os.close(its)
    shown = b""
    try:
        while piece := os.read(ours, 4096):
            shown += piece
    except OSError:  # the other end was closed
        pass
    assert process.wait(PATIENCE) == 0
    return shown


def test_a_terminal_shows_how_far_it_is(hub, model, cache):
    partial(cache, model).parent.mkdir(parents=True)
    partial(cache, model).write_bytes(model[: len(model) // 2])  # how much one read from a socket brings is not known
    shown = shown_on_terminal("inspect", "-hf", NAME)
    assert b"downloading tiny-Q4_K_M.gguf:  50 % of" in shown and b"checking tiny-Q4_K_M.gguf" in shown
    assert shown.replace(b"\r\n", b"\n").endswith(b"\r\x1b[K")  # the progress line is cleared


def test_a_quiet_command_shows_nothing(hub, model):
    assert shown_on_terminal("run", "-hf", NAME, "-p", "hello", "-n", "1", "--raw", "--quiet") == b""


@pytest.mark.parametrize("name", ["tiny", "a/b/c", "/b", "a/", "a/b:", "a/../b", "a/b:Q4/x", "a/b:Q4[", "a b/c", "../b", "a/b:x:y"])
def test_names_that_are_none_are_wrong_usage(hub, name):
    check_refusal(inspect(name), 2, "USER/REPO:QUANT")
    assert not hub.requests


def test_an_address_that_is_none_is_wrong_usage(hub, monkeypatch):
    monkeypatch.setenv("MODEL_ENDPOINT", "ftp://user:secret@somewhere/")  # has precedence over HF_ENDPOINT
    result = inspect()
    check_refusal(result, 2, "MODEL_ENDPOINT", "ftp://somewhere")
    assert not hub.requests


def test_a_password_in_an_address_is_not_shown(hub, model, monkeypatch):
    hub.stop()
    monkeypatch.setenv("HF_ENDPOINT", hub.address.replace("http://", "http://user:secret@"))
    result = inspect()
    check_failure(result, hub.address)
    assert "secret" not in result.stderr


COMMANDS = {
    "run": ["-p", "hello"],
    "chat": [],
    "serve": ["--port", "0"],
    "bench": ["-p", "8", "-n", "1"],
    "calibrate": ["text.txt", "-o", "x.cal"],
    "tune": ["-f", "prompts.jsonl"],
    "eval": ["needles", "-o", "out"],
    "docs add": ["text.txt", "--store", "shelf"],
    "docs ask": ["-p", "hello", "--all", "--store", "shelf"],
    "papers run": ["ada-kv/figure-6", "-o", "out"],
    "papers show": ["ada-kv/figure-6"],
    "inspect": [],
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_a_model_takes_one_of_a_hub(hub, cache, models, tmp_path, command):
    (tmp_path / "text.txt").write_text("some words")
    (tmp_path / "prompts.jsonl").write_text('{"text": "some words", "question": "which?"}\n')
    if command == "docs ask":
        (tmp_path / "model.gguf").write_bytes(models[0])
        assert winnow("docs", "add", "-m", "model.gguf", "text.txt", "--store", "shelf", cwd=tmp_path).returncode == 0
    result = winnow(*command.split(), "-hf", NAME + ":Q8_0", "--offline", *COMMANDS[command], cwd=tmp_path)
    check_failure(result, f"{cache} has no model {NAME}:Q8_0")


def test_a_file_and_a_model_of_a_hub_do_not_go_together(hub, model, monkeypatch):
    check_refusal(winnow("run", "-m", "x.gguf", "-hf", NAME, "-p", "x"), 2, "x.gguf", NAME)
    check_refusal(winnow("inspect", "x.gguf", "-hf", NAME), 2, "x.gguf", NAME)
    monkeypatch.setenv("WINNOW_MODEL", "x.gguf")
    result = winnow("run", f"-hf={NAME}", "-p", "hello", "-n", "1", "--raw")
    assert result.returncode == 0, result.stderr


def test_calibrate_reads_the_text_that_comes_with_a_model_of_a_hub(hub, model, tmp_path):
    (tmp_path / "text.txt").write_text("some words to read " * 20)
    result = winnow("calibrate", "-hf", NAME, "text.txt", "-o", "x.cal", "--raw", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "x.cal").exists()


def test_a_server_calls_the_model_by_its_files_name(hub, model):
    with Server(NAME, source="-hf") as server:
        status, models = server.get("/v1/models")
    assert status == 200 and [entry["id"] for entry in models["data"]] == ["tiny-Q4_K_M"]


def test_completions_know_that_a_value_follows():
    def complete(*words):
        return winnow("complete", *words).stdout

    assert "--hf-repo\t" in complete("run", "--hf")
    assert complete("run", "-hf", "--kv") != complete("run", "--kv")
