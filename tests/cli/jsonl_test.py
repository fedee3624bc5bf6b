# SPDX-License-Identifier: Apache-2.0
"""`winnow run --jsonl`: answers are kept, the file of answers is only appended to, and a run continues where another
one ended."""

import json
import os
import re
import resource
import signal
import subprocess
import sys

import pytest
from program import ADDRESS_SANITIZED, PATIENCE, WINNOW, wait_for


def read(path):
    with open(path, "rb") as file:
        return file.read()


def write(path, data):
    with open(path, "wb") as file:
        file.write(data if isinstance(data, bytes) else data.encode())
    return path


def prompts_of(texts, **more):
    return "".join(json.dumps({"id": f"q{i}", "text": text, "question": "and?", **more}) + "\n" for i, text in enumerate(texts))


class Folder:
    def __init__(self, path, model):
        self.path = path
        self.model = model
        self.prompts = write(f"{path}/prompts.jsonl", prompts_of(f"some words {i} to read" for i in range(20)))

    def command(self, prompts, answers, *more):
        tokens = [] if "-n" in more else ["-n", "4"]
        return [WINNOW, "run", "-m", self.model, "--raw", *tokens, "--ignore-eos", "--threads", "1", "--jsonl", prompts, "-o", answers, *more]

    def run(self, prompts, answers, *more, code=0, **process):
        result = subprocess.run(self.command(prompts, answers, *more), capture_output=True, text=True, errors="replace", timeout=PATIENCE, **process)
        assert result.returncode == code, (result.returncode, result.stderr)
        assert result.stdout == ""
        return result.stderr


@pytest.fixture
def f(tmp_path, model):
    return Folder(tmp_path, model)


def records(path):
    return [json.loads(line) for line in read(path).splitlines()]


def test_what_is_no_answer_stays(f):
    """A file with lines that are not winnow's answers is not changed, and the error names the line."""
    good = f"{f.path}/good.jsonl"
    f.run(f.prompts, good)
    whole = read(good)
    one = whole.splitlines(keepends=True)[0]
    foreign = [
        (b"# My project\n\nIt is fine.\n", 1),
        (b"one line, no line feed", 1),
        (read(f.prompts), 1),
        (read(f.prompts).splitlines()[0], 1),
        (b'{"hash":"0123456789abcdef","file":"x"}', 1),
        (b'{"hash":"0123456789abcdef","file":"x"', 1),
        (b'{"hash":"', 1),
        (b"{", 1),
        (one + one + b"a note of mine\n" + one, 3),
        (whole + b"a note of mine", 21),
        (whole + one[:40] + b"\n" + one, 21),
        (b"[" * 60_000, 1),
        (b"\xff\xfe\x00\x01", 1),
    ]
    for data, line in foreign:
        path = write(f"{f.path}/mine", data)
        errors = f.run(f.prompts, path, code=1)
        assert f"mine line {line} is not an answer" in errors and errors.count("\n") == 1, (data[:60], errors)
        assert read(path) == data, data[:60]


@pytest.mark.parametrize("more", [[], ["--kv", "snapkv:window=8", "--budget", "40"], ["--protocol", "question-agnostic"]])
def test_a_common_beginning_is_read_once(f, more):
    """Answers are those of each prompt in a run of its own."""
    texts = ["words to begin with " * 20 + end for end in ("", "and one", "and two more", "")]
    lines = prompts_of(texts).splitlines(keepends=True)
    errors = f.run(write(f"{f.path}/common.jsonl", "".join(lines)), f"{f.path}/together.jsonl", "-v", *more)
    found, asked = re.search(r"(\d+) of (\d+) tokens begin a prompt like an earlier one", errors).groups()
    assert int(asked) * 0.5 < int(found) < int(asked)
    for i, line in enumerate(lines):
        f.run(write(f"{f.path}/one.jsonl", line), f"{f.path}/alone{i}.jsonl", *more)
    assert records(f"{f.path}/together.jsonl") == [records(f"{f.path}/alone{i}.jsonl")[0] for i in range(len(lines))]


def test_texts_are_known_to_the_next_run(f):
    prompts = write(f"{f.path}/common.jsonl", prompts_of(["words to begin with " * 20 + end for end in ("and one", "and two")]))
    few = ["--texts", f"{f.path}/texts", "--prefix-memory", "64MiB", "-v"]
    found = [int(re.search(r"(\d+) of \d+ tokens begin a prompt", f.run(prompts, f"{f.path}/{name}.jsonl", *few))[1]) for name in ("first", "second")]
    assert found[1] > found[0] and records(f"{f.path}/first.jsonl") == records(f"{f.path}/second.jsonl")
    assert "leaves nothing of the free memory" in f.run(prompts, f"{f.path}/none.jsonl", "--prefix-memory", "99999GiB", code=2)


def test_the_prompts_are_not_the_answers(f):
    before = read(f.prompts)
    os.symlink(f.prompts, f"{f.path}/link")
    os.link(f.prompts, f"{f.path}/hard")
    for answers in (f.prompts, f"{f.path}/link", f"{f.path}/hard"):
        assert "is the file with the prompts" in f.run(f.prompts, answers, code=2)
        assert read(f.prompts) == before


def test_what_is_no_file_is_refused(f):
    for device in ("/dev/null", "/dev/full"):
        assert "not a regular file" in f.run(f.prompts, device, code=1)
    os.mkfifo(f"{f.path}/pipe")
    assert "not a regular file" in f.run(f.prompts, f"{f.path}/pipe", code=1)
    assert "directory" in f.run(f.prompts, f.path, code=1)
    f.run(f.prompts, "-", code=2, cwd=f.path)
    assert not os.path.exists(f"{f.path}/-")
    assert "absent" in f.run(f"{f.path}/absent", f"{f.path}/none.jsonl", code=1)
    assert not os.path.exists(f"{f.path}/none.jsonl"), "there is nothing to answer"

    target = write(f"{f.path}/target.jsonl", "")
    os.symlink("target.jsonl", f"{f.path}/to-target")
    f.run(f.prompts, f"{f.path}/to-target")
    assert os.path.islink(f"{f.path}/to-target") and len(records(target)) == 20


def test_a_line_is_done_when_the_same_was_asked_in_the_same_way(f):
    """A prompt is skipped if it was answered with the same options; the file is only appended to."""
    path = f"{f.path}/resumed.jsonl"
    f.run(f.prompts, path)
    first = read(path)
    assert [r["id"] for r in records(path)] == [f"q{i}" for i in range(20)]
    assert len({r["hash"] for r in records(path)}) == 20
    f.run(f.prompts, path)
    assert read(path) == first, "nothing is done twice"
    added = 0
    for more, count in ((["--kv", "streaming-llm", "--budget", "20"], 20), (["--kv", "streaming-llm", "--budget", "16"], 20), (["--kv-type", "f32"], 20), (["-n", "3"], 20), (["--system", "x"], 20)):
        f.run(f.prompts, path, *more)
        added += count
        assert read(path).startswith(first) and len(records(path)) == 20 + added, more
    other = write(f"{f.path}/other.jsonl", prompts_of(["some words 0 to read", "another text"]))
    f.run(other, path)
    assert read(path).startswith(first) and len(records(path)) == 20 + added + 1, "q1 has another text now"
    twice = write(f"{f.path}/twice.jsonl", prompts_of(["twice"]) * 2)
    f.run(twice, path)
    f.run(twice, path)
    assert len(records(path)) == 20 + added + 3, "a line that is there twice is answered twice"


def test_a_line_that_was_cut_is_answered_again(f):
    path = f"{f.path}/whole.jsonl"
    f.run(f.prompts, path)
    whole = read(path)
    lines = whole.splitlines(keepends=True)
    for kept in (0, 1, 19):
        for cut in (5, 12, 30, 60, len(lines[kept]) - 2, len(lines[kept]) - 1):
            if kept == 0 and cut < 25:
                continue  # too short to be recognized as winnow's
            short = write(f"{f.path}/cut.jsonl", b"".join(lines[:kept]) + lines[kept][:cut])
            f.run(f.prompts, short, "-q")
            assert read(short).startswith(b"".join(lines[:kept]))
            assert sorted(read(short).splitlines()) == sorted(whole.splitlines()), (kept, cut)


def test_bad_lines_are_named(f):
    deep = '{"id": ' + "[" * 60_000 + "]" * 60_000 + ', "text": "x"}'
    lines = ["no json", json.dumps({"text": 3}), deep, "{}", json.dumps({"id": "good", "text": "words"}), '{"text": "cut']
    errors = f.run(write(f"{f.path}/bad.jsonl", "\n".join(lines)), f"{f.path}/of-bad.jsonl", code=1)
    for line, why in ((1, "not valid JSON"), (2, "not a string"), (3, "levels"), (4, "neither"), (6, "not valid JSON")):
        assert any(f"bad.jsonl line {line}: " in e and why in e for e in errors.splitlines()), (line, errors)
    assert "5 of 6 lines" in errors and [r["id"] for r in records(f"{f.path}/of-bad.jsonl")] == ["good"]


def test_a_text_in_place_of_prompts_is_not_named_line_by_line(f):
    """The error names the first lines and counts all; no new file is created, and an existing one stays."""
    text = write(f"{f.path}/text.txt", "a line of a text\n" * 162)
    errors = f.run(text, f"{f.path}/of-text.jsonl", code=1)
    named = [line for line in errors.splitlines() if "text.txt line " in line]
    assert len(named) == 5 and "162 of 162 lines" in errors and "the first 5 are named" in errors, errors
    assert not os.path.exists(f"{f.path}/of-text.jsonl")
    f.run(text, write(f"{f.path}/empty.jsonl", ""), code=1)
    assert read(f"{f.path}/empty.jsonl") == b""
    result = subprocess.run([*f.command(f.prompts, f"{f.path}/no-model.jsonl"), "-m", f"{f.path}/absent.gguf"], capture_output=True, timeout=PATIENCE)
    assert result.returncode != 0 and not os.path.exists(f"{f.path}/no-model.jsonl")


def test_the_end_says_what_was_answered(f):
    path = f"{f.path}/told.jsonl"
    few = write(f"{f.path}/few.jsonl", prompts_of(["one", "two", "three"]))
    assert f.run(few, path).splitlines()[-1].endswith(f"3 answered, 0 known before: {path}")
    more = write(f"{f.path}/more.jsonl", read(few) + prompts_of(["four"], id="q4").encode() + b"no prompt\n")
    assert f"1 answered, 3 known before: {path}" in f.run(more, path, code=1)
    assert f.run(few, path, "-q") == ""


def test_two_writers(f):
    """The first run reads its prompts from a pipe that stays open, so that it is still running."""
    pipe, path = f"{f.path}/slow", f"{f.path}/shared.jsonl"
    os.mkfifo(pipe)
    first = subprocess.Popen(f.command(pipe, path), stderr=subprocess.PIPE, text=True)
    with open(pipe, "w") as prompts:
        prompts.write(prompts_of(f"text {i}" for i in range(16)))
        prompts.flush()
        wait_for(lambda: os.path.exists(path) and len(read(path).splitlines()) == 16)
        before = read(path)
        assert "another process" in f.run(f.prompts, path, code=1)
        assert read(path) == before
    _, errors = first.communicate(timeout=PATIENCE)
    assert first.returncode == 0, errors
    f.run(f.prompts, path)
    assert len(records(path)) == 36 and read(path).startswith(before)


def cpu_seconds(pid):
    fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_interrupt_while_waiting(f):
    """Ctrl-C ends a run that waits for its prompts."""
    os.mkfifo(f"{f.path}/silent")
    for command in (f.command(f"{f.path}/silent", f"{f.path}/none.jsonl"), [WINNOW, "run", "-m", f.model, "--raw", "-f", f"{f.path}/silent"]):
        process = subprocess.Popen(command, stderr=subprocess.PIPE)
        wait_for(lambda: any(os.path.realpath(f"/proc/{process.pid}/fd/{fd}").endswith("/silent") for fd in os.listdir(f"/proc/{process.pid}/fd")))
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)
        assert process.returncode == 130, process.returncode


def test_interrupt_keeps_what_is_answered(f):
    """ The second of two prompts ends at a stop text while the first goes on: Ctrl-C keeps the second's answer. The
    first one's limit is a hundred times the tokens that the test waits for; with a much higher limit its memory could
    keep the second one waiting. """
    two, path = write(f"{f.path}/two.jsonl", prompts_of(["one text", "quite another thing"])), f"{f.path}/two-answers.jsonl"
    sampled = ["--temp", "1", "--top-k", "0", "--min-p", "0", "--top-p", "1"]
    f.run(two, path, *sampled, "-n", "3000")
    first, second = (r["answer"] for r in records(path))
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    f.run(two, path, *sampled, "-n", "3001")
    more = resource.getrusage(resource.RUSAGE_CHILDREN)
    enough = 2 * (more.ru_utime + more.ru_stime - usage.ru_utime - usage.ru_stime)
    size = next(n for n in range(1, 60) if any(second[i : i + n] not in first for i in range(40, 1000)))
    stop = next(second[i : i + size] for i in range(40, 1000) if second[i : i + size] not in first)
    os.remove(path)
    process = subprocess.Popen(f.command(two, path, *sampled, "-n", "300000", "--stop", stop), stderr=subprocess.PIPE)
    wait_for(lambda: cpu_seconds(process.pid) > enough)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, process.returncode
    assert [(r["id"], r["finish_reason"]) for r in records(path)] == [("q1", "stop")]


def test_a_full_disk(f):
    """A file-size limit simulates a full disk: the answers that fit stay complete, and the same command continues
    later."""
    path = f"{f.path}/limited.jsonl"
    f.run(f.prompts, f"{f.path}/unlimited.jsonl")
    whole = read(f"{f.path}/unlimited.jsonl")
    limit = len(b"".join(whole.splitlines(keepends=True)[:18]))
    errors = f.run(f.prompts, path, code=1, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))
    assert "File too large" in errors and path in errors and errors.count("\n") == 1, errors
    assert whole.startswith(read(path)) and 16 <= len(records(path)) <= 18
    f.run(f.prompts, path)
    assert read(path) == whole


@pytest.mark.skipif(ADDRESS_SANITIZED, reason="what is freed is kept for a while")
def test_memory_of_a_long_line(f):
    size = 60 << 20
    long = f"{f.path}/long.jsonl"

    def peak(data):
        write(long, data)
        # Starts from a small process, because a child's peak memory includes its parent's at the fork.
        small = "import resource, subprocess, sys; subprocess.run(sys.argv[1:]); "
        small += "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
        command = [sys.executable, "-c", small, *f.command(long, f"{f.path}/of-long.jsonl")]
        result = subprocess.run(command, capture_output=True, text=True)
        assert "not a string" in result.stderr, result.stderr
        return int(result.stdout) << 10

    small = peak('{"text": 3}')
    for note in ('"' + "a word " * (size // 7) + '"', "[" + "1," * (size // 2) + "[]]"):
        assert peak('{"note": ' + note + ', "text": 3}') - small < 3 * size
    os.remove(long)
