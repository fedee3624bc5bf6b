# SPDX-License-Identifier: Apache-2.0
"""Invalid input: exit code, one sentence on stderr with the relevant parts, nothing on stdout."""

import json
import os
import resource
import signal
import subprocess
import time

import pytest
from program import PATIENCE, WINNOW, check_refusal, make_tiny_gguf


def run(arguments, **options):
    return subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE, **options)


def shell(command, *arguments):
    return subprocess.run(["sh", "-c", command, WINNOW, *arguments], capture_output=True, text=True, timeout=PATIENCE)


def asking(path, *more):
    return ["run", "-m", path, "--raw", "-p", "hello", "--json", *more]


@pytest.fixture(scope="module")
def good(model):
    with open(model, "rb") as file:
        return file.read()


def written(folder, name, data):
    with open(f"{folder}/{name}", "wb") as file:
        file.write(data)
    return f"{folder}/{name}"


@pytest.fixture(scope="module")
def long(work):
    return written(work, "long.txt", b"many words " * 400)


MODELS = {
    "folder": (None, ["is a folder"]),
    "empty": (lambda good: b"", ["0 bytes"]),
    "truncated": (lambda good: good[: len(good) // 2], ["truncated"]),
    "no GGUF": (lambda good: b"just some text, long enough for a header", ["not a GGUF"]),
    "hostile header": (lambda good: good[:8] + b"\xff" * 16 + good[24:], ["cannot fit"]),
    "shape": (lambda good: good[: shape_at(good)] + (32).to_bytes(8, "little") + good[shape_at(good) + 8 :], ["blk"]),
}


def shape_at(good):
    return good.find(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4


@pytest.mark.parametrize("name", MODELS)
def test_a_model_that_is_no_good(good, work, tmp_path, name):
    data, parts = MODELS[name]
    check_refusal(run(asking(written(tmp_path, "model.gguf", data(good)) if data else work)), 1, *parts)


def test_a_truncated_model_says_how_long_it_is(good, tmp_path):
    half = len(good) // 2
    check_refusal(run(asking(written(tmp_path, "cut.gguf", good[:half]))), 1, "truncated", str(half))


def test_a_model_that_is_not_there(work):
    check_refusal(run(asking(f"{work}/absent.gguf")), 1, "absent.gguf", "No such file")


def test_an_architecture_that_is_not_known(work):
    check_refusal(run(asking(make_tiny_gguf(f"{work}/mamba.gguf", "mamba"))), 1, "mamba", "llama, qwen2, qwen3, gemma")


@pytest.mark.skipif(os.getuid() == 0, reason="root may read everything")
def test_a_model_that_may_not_be_read(good, tmp_path):
    locked = written(tmp_path, "locked.gguf", good)
    os.chmod(locked, 0)
    check_refusal(run(asking(locked)), 1, "Permission denied")


def test_a_text_that_is_no_good(model, work):
    empty = written(work, "empty.txt", b"")
    check_refusal(run(["run", "-m", model, "--raw", "-f", empty]), 1, "empty")
    check_refusal(run(["run", "-m", model, "--raw", "-f", f"{work}/absent.txt"]), 1, "absent.txt")
    check_refusal(run(["run", "-m", model, "--raw", "-f", work]), 1, "folder")


USAGE = {
    "method": (["--kv", "snapky"], ["snapky", "did you mean snapkv"]),
    "option": (["--kv", "snapkv:windw=3"], ["windw", "did you mean window"]),
    "value": (["--kv", "snapkv:window=0", "--budget", "50"], ["window=0", "1 to 65536"]),
    "unbalanced": (["--kv", "ada(snapkv"], ["ada"]),
    "deep": (["--kv", "a(" * 50 + "snapkv" + ")" * 50], ["a"]),
    "budget missing": (["--kv", "snapkv"], ["budget"]),
    "budget 0": (["--kv", "snapkv", "--budget", "0"], ["'0'"]),
    "budget negative": (["--kv", "snapkv", "--budget=-3"], ["'-3'"]),
    "budget no number": (["--kv", "snapkv", "--budget", "many"], ["'many'"]),
    "budget over 100 %": (["--kv", "snapkv", "--budget", "120%"], ["'120%'"]),
    "kv type": (["--kv-type", "q5_1"], ["q5_1", "q8_0"]),
    "threads": (["--threads", "0"], ["0 threads"]),
    "device": (["--device", "gpu7"], ["'gpu7' is not a device", "cpu, auto"]),
    "device without its library": (["--device", "musa"], ["no device 'musa'", "libggml-musa.so"]),
    "precision": (["--precision", "f16"], ["f16", "bf16"]),
    "pack": (["--pack", "column"], ["column", "resident"]),
    "rows": (["--rows", "apart"], ["apart", "alike"]),
    "pack in f32": (["--pack", "layer", "--precision", "f32"], ["layer", "f32"]),
    "scaling": (["--rope-scaling", "yarn"], ["yarn", "linear"]),
    "temperature": (["--temp", "-1"], ["-1"]),
    "temperature no number": (["--temp", "nan"], ["nan"]),
    "repeat penalty": (["--repeat-penalty", "0"], ["penalty is 0"]),
    "tokens": (["-n", "-1"], ["-1 is less than 0"]),
    "log probabilities": (["--logprobs", "-1"], ["-1 is less than 0"]),
    "escapes": (["--kv", "\x1b[31mred"], ["\\x1b[31mred"]),
    "unknown flag": (["--nonsense"], ["--nonsense"]),
}


@pytest.mark.parametrize("name", USAGE)
def test_wrong_usage(model, name):
    arguments, parts = USAGE[name]
    check_refusal(run(asking(model, *arguments)), 2, *parts)


def test_wrong_usage_of_what_is_asked_for(model, long):
    check_refusal(run(["run", "-m", model, "--raw", "-f", long, "--json", "--kv", "snapkv", "--budget", "32"]), 2, "32", "33")
    check_refusal(run(["run", "-p", "x"]), 2, "WINNOW_MODEL")
    check_refusal(run(["run", "-m", model]), 2, "-f")
    check_refusal(run(["methods", "nope"]), 2, "nope")


UNEXPECTED = [
    (["serve", "--prot", "80"], "there is no option --prot: did you mean --port? Otherwise see winnow serve --help"),
    (["serve", "--port", "80", "--hots=x", "--prot", "80", "y"], "there is no option --hots: did you mean --host? Otherwise see winnow serve --help"),
    (["run", "-z", "5"], "there is no option -z: see winnow run --help"),
    (["serve", "--frobnicate"], "there is no option --frobnicate: see winnow serve --help"),
    (["run", "here", "there"], "unexpected argument here: see winnow run --help"),
    (["docs", "lst"], "there is no command lst: did you mean list? There are add, ask, "),
    (["docs", "add", "--stor", "x", "text"], "there is no option --stor: did you mean --store? Otherwise see winnow docs add --help"),
    (["srve"], "there is no command srve: did you mean serve? There are run, chat, "),
    (["--vrsion"], "there is no option --vrsion: did you mean --version? Otherwise see winnow --help"),
]


@pytest.mark.parametrize(("arguments", "sentence"), UNEXPECTED)
def test_an_argument_that_is_not_known_is_named_with_the_nearest(arguments, sentence):
    result = run(arguments)
    check_refusal(result, 2)
    assert result.stderr.startswith(f"winnow: {sentence}"), result.stderr


@pytest.fixture
def pipe(tmp_path):
    """A pipe without a writer: whatever reads it waits forever."""
    os.mkfifo(tmp_path / "pipe")
    return str(tmp_path / "pipe")


EARLY = {
    "temperature": (["--temp", "-1"], 2, ["the temperature is -1"]),
    "top-p": (["--top-p", "2"], 2, ["top-p is 2"]),
    "unwritable --dump-kept": (["--dump-kept", "{}/absent/kept.json"], 1, ["absent/kept.json", "No such file"]),
    "--dump-kept to a folder": (["--dump-kept", "{}"], 1, ["it is a folder"]),
    "--save-kv to a link to nothing": (["--save-kv", "{}/dangling"], 1, ["a link to a file that does not exist"]),
}


@pytest.mark.parametrize("name", EARLY)
def test_what_cannot_be_is_refused_before_the_text_is_read(model, pipe, tmp_path, name):
    arguments, code, parts = EARLY[name]
    os.symlink("nowhere", tmp_path / "dangling")
    check_refusal(run(["run", "-m", model, "--raw", "-f", pipe, *(a.format(tmp_path) for a in arguments)]), code, *parts)


def test_dump_kept_with_jsonl_is_refused_before_the_prompts_are_read(model, pipe, tmp_path):
    command = ["run", "-m", model, "--jsonl", pipe, "-o", str(tmp_path / "o"), "--dump-kept", str(tmp_path / "k")]
    check_refusal(run(command), 2, "--dump-kept")


STEERING = "\x1b]0;title\x07\x9b\r\n"


@pytest.fixture(scope="module")
def steering(work):
    """A text whose file name contains control sequences of terminals."""
    return written(work, STEERING, b"some words to keep " * 4)


@pytest.fixture(scope="module")
def store(work, model, steering):
    """A store with one document, `kept`."""
    subprocess.run([WINNOW, "docs", "add", "-m", model, steering, "--name", "kept", "--store", f"{work}/store", "-q"], check=True)
    return ["--store", f"{work}/store"]


def test_control_characters_of_names_are_shown(model, work, steering, store):
    shown = "\\x1b]0;title\\x07"
    check_refusal(run(["run", "-m", model, "--raw", "-f", f"{work}/absent{STEERING}"]), 1, shown, "\\x0d\\x0a")
    check_refusal(run(asking(f"{work}/{STEERING}.gguf")), 1, shown)
    check_refusal(run(["docs", "add", "-m", model, steering, *store]), 2, shown)
    check_refusal(run(["docs", "import", steering, *store]), 1, shown)
    saved = run(["run", "-m", model, "--raw", "-f", steering, "-p", "hello", "-n", "0", "--save-kv", f"{steering}.kv"])
    for result in (saved, run(["inspect", f"{steering}.kv"])):
        said = result.stdout + result.stderr
        assert result.returncode == 0 and "\\x1b]0;title" in said and not any(c in said for c in "\x1b\x07\x9b\r"), result


@pytest.mark.parametrize("closed", ["<&- >&-", "<&- >&- 2>&-", ">&-", "<&- 2>&-"])
def test_a_store_that_is_opened_does_not_become_stdout(work, store, closed):
    for command in ("list", "verify", "show kept"):
        shell(f'"$0" docs {command} --store "$1" {closed}', f"{work}/store")
    verified = run(["docs", "verify", *store])
    assert verified.returncode == 0 and "1 document in " in verified.stdout, verified


def test_closed_stdout_and_stdin():
    closed = shell('"$0" methods >&-')
    assert closed.returncode == 1 and "cannot write to stdout" in closed.stderr, closed
    assert shell('"$0" methods <&-').returncode == 0


@pytest.mark.parametrize("stdin, words", [("<&-", "cannot read stdin"), ('<"$1"', "it is a folder"), ('0>"$1"/written', "cannot read stdin")])
def test_chat_without_lines(model, work, stdin, words):
    result = shell(f'"$0" chat -m "$2" --raw {stdin}', work, model)
    assert result.returncode == 1 and words in result.stderr and result.stderr.count("\n") == 1, result


@pytest.mark.parametrize("option, another", [("--save-kv", "--dump-kept"), ("--dump-kept", "--save-kv")])
def test_a_write_that_fails_leaves_what_was_there(model, long, tmp_path, option, another):
    """A limit on file sizes simulates a full disk; a file of another kind is not replaced either."""

    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    path = str(tmp_path / "written")
    command = ["run", "-m", model, "--raw", "-f", long, "-n", "1", "-p", "x", "-q", "--json"]
    assert run([*command, option, path]).returncode == 0
    with open(path, "rb") as file:
        before = file.read()
    check_refusal(run([*command, option, path], preexec_fn=small_files), 1, "File too large", path)
    check_refusal(run([*command, another, path]), 1, "it exists and is not", path)
    with open(path, "rb") as file:
        assert file.read() == before
    assert os.listdir(tmp_path) == ["written"], "no part is left"


def test_a_file_of_mine_is_not_replaced(model, long, store, tmp_path):
    mine = written(tmp_path, "mine.txt", b"a text of mine\n")
    for command in (
        ["run", "-m", model, "--raw", "-f", long, "--save-kv", mine],
        ["run", "-m", model, "--raw", "-f", long, "-n", "0", "--dump-kept", mine],
        ["docs", "export", "kept", "-o", mine, *store],
    ):
        check_refusal(run(command), 1, "mine.txt", "it exists and is not")
    with open(mine, "rb") as file:
        assert file.read() == b"a text of mine\n"


def test_what_holds_a_text_is_for_its_owner_alone(model, long, store, tmp_path):
    exported, saved = str(tmp_path / "exported"), str(tmp_path / "saved")
    run(["docs", "export", "kept", "-o", exported, *store])
    run(["run", "-m", model, "--raw", "-f", long, "-n", "0", "--save-kv", saved])
    for path in (exported, saved):
        assert os.stat(path).st_mode & 0o777 == 0o600, path


DEEP = "[" * 60_000 + "]" * 60_000


@pytest.mark.parametrize("command", ["tune", "eval"])
def test_deep_json_in_a_line(model, tmp_path, command):
    line = json.dumps({"text": "words", "outputs": ["x"]})[:-1] + f', "id": {DEEP}}}\n'
    path = written(tmp_path, "deep.jsonl", line.encode())
    arguments = ["tune", "-m", model, "-f", path, "--raw"] if command == "tune" else ["eval", path, "-m", model, "--raw", "-o", str(tmp_path / "out")]
    result = run(arguments)
    assert result.returncode == 1 and "deep.jsonl line 1: " in result.stderr and "64 levels" in result.stderr, result


@pytest.mark.parametrize("text", [DEEP, '{"spec": ' + DEEP + "}"], ids=["array", "object"])
def test_deep_json_in_a_file(tmp_path, text):
    check_refusal(run(["inspect", "--kept", written(tmp_path, "deep.json", text.encode())]), 1, "deep.json")


def test_no_tokens_have_no_negative_speed(model):
    nothing = run(asking(model, "-n", "0"))
    assert nothing.returncode == 0 and json.loads(nothing.stdout)["timings"]["decode_tokens_per_second"] >= 0
    assert "-" not in run(["run", "-m", model, "--raw", "-p", "hello", "-n", "0"]).stderr.split("decode")[1]


def test_a_prompt_beyond_the_context_is_a_warning(model, long):
    result = run(["run", "-m", model, "--raw", "-f", long, "-n", "1"])
    assert result.returncode == 0 and "6004" in result.stderr and "256" in result.stderr, result


def test_a_full_stdout():
    with open("/dev/full", "w") as full:
        result = subprocess.run([WINNOW, "methods"], stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert result.returncode == 1 and "cannot write to stdout" in result.stderr, result


def test_a_pipe_that_nobody_reads():
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([WINNOW, "methods"], stdout=writer, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    os.close(writer)
    assert result.returncode == 1 and "cannot write to stdout" in result.stderr, result


def test_ctrl_c_ends_an_answer(model, long):
    command = [WINNOW, "run", "-m", model, "--raw", "-f", long, "-n", "1000000", "--ignore-eos"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(20)  # the answer has begun
    process.send_signal(signal.SIGINT)
    begin = time.time()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130 and b"decode" in errors and time.time() - begin < 30, errors
