# SPDX-License-Identifier: Apache-2.0
"""`winnow chat` with lines from a script and from a terminal."""

import json
import os
import pty
import re
import resource
import select
import shlex
import shutil
import signal
import subprocess
import termios
import time

import pytest
from program import ADDRESS_SANITIZED, PATIENCE, WINNOW, make_tiny_gguf, wait_for

REAL = os.environ.get("WINNOW_TEST_MODEL")
needs_real_model = pytest.mark.skipif(not REAL, reason="WINNOW_TEST_MODEL is not set")


def chat(lines, *arguments, code=0, **options):
    """The greedy answers (stdout), and stderr."""
    text = "".join(line + "\n" for line in lines)
    threads = [] if "--threads" in arguments else ["--threads", "2"]
    command = [WINNOW, "chat", "--temp", "0", *threads, *arguments]
    result = subprocess.run(command, input=text, capture_output=True, text=True, errors="replace", timeout=PATIENCE, **options)
    assert result.returncode == code, (arguments, lines, result.returncode, result.stderr)
    return result.stdout, result.stderr


def seen(errors):
    """Tokens, fewest and most entries of each /stats."""
    return [tuple(map(int, found)) for found in re.findall(r"^(\d+) tokens seen, entries per head: (\d+) min, [\d.]+ mean, (\d+) max", errors, re.MULTILINE)]


def means(errors):
    """Mean entries of each /stats."""
    return [float(mean) for mean in re.findall(r"min, ([\d.]+) mean", errors)]


@pytest.fixture(scope="module")
def model(work):
    return make_tiny_gguf(f"{work}/chat.gguf", "llama", "chatml")


@pytest.fixture(scope="module")
def raw_model(work):
    return make_tiny_gguf(f"{work}/raw.gguf")


@pytest.fixture
def ten(model):
    return ["-m", model, "-n", "10", "--ignore-eos"]


@pytest.fixture
def few(model):
    return ["-m", model, "-n", "3", "--ignore-eos"]


def test_turns_are_added_to_the_cache(ten):
    answers, errors = chat(["hello", "/stats", "and you?", "/stats"], *ten)
    (first, least, most), (second, _, _) = seen(errors)
    assert least == most == first and second > first + 10, errors
    assert "f16" in errors and "held of" in errors and re.search(r"last line: \d+ tokens read at \d+ t/s, 10 answered", errors), errors
    assert "cut off after 10 tokens" in errors
    assert chat(["hello", "and you?"], *ten)[0] == answers, "greedy answers repeat"
    assert chat(["hello", "and you?"], *ten, "-q")[1] == ""



def test_another_method_reads_the_conversation_anew(ten):
    _, errors = chat(["hello", "and you?", "/stats", "/kv full", "/stats", "what?", "/stats"], *ten)
    before, after = seen(errors)
    assert "are read again with your next line" in errors and "nothing is cached" in errors and after[0] > before[0], errors



def test_memory_is_constant_or_grows_by_what_is_left_of_each_turn(ten):
    """A per-step method's memory is constant; a one-shot method's lanes grow."""
    turns = ["some words to read " * 6, "/stats", "and more of them", "/stats"]
    assert [s[2] for s in seen(chat(turns, *ten, "--kv", "streaming-llm", "--budget", "40")[1])] == [40, 40]
    apart = ["--protocol", "question-agnostic"]
    growing = [s[2] for s in seen(chat(turns, *ten, *apart, "--kv", "snapkv:window=8", "--budget", "40")[1])]
    assert 40 < growing[0] < growing[1], growing
    long = ["some words to read " * 6, "/stats", "and many more of them " * 9, "/stats", "and more " * 20, "/stats"]
    for budget, left in (("40", lambda turn: 40), ("25%", lambda turn: turn // 4)):
        for method in ("snapkv", "ada-snapkv"):
            errors = chat(long, *ten, *apart, "--kv", f"{method}:window=8", "--budget", budget)[1]
            tokens, entries = [s[0] for s in seen(errors)], means(errors)
            for turn in (1, 2):
                assert entries[turn] - entries[turn - 1] == left(tokens[turn] - tokens[turn - 1]), (method, budget, errors)
    again = chat([*turns, "/kv snapkv:window=8 50", "more", "/stats"], *ten, "--kv", "snapkv:window=8", "--budget", "40")[1]
    assert seen(again)[-1][2] == 50 + 9, "compressed anew; the last token of an answer is read with the next turn"



@pytest.mark.parametrize("budget", ["40", "25%"])
@pytest.mark.parametrize("method", ["snapkv:window=8", "ada-snapkv:window=8", "auto"])
def test_a_budget_is_for_the_whole_conversation(ten, method, budget):
    """Each turn is chosen from the whole conversation, and reads only what is new."""
    lines = ["some words to read " * 6, "/stats", "and many more of them " * 9, "/stats", "and more " * 20, "/stats"]
    answers, errors = chat(lines, *ten, "--kv", method, "--budget", budget)
    for (tokens, *_), entries in zip(seen(errors), means(errors)):
        asked = tokens - 9  # the answer's entries stay, but for its last token, which is not read yet
        assert entries == (40 if budget == "40" else asked // 4) + 9, errors
    known = [int(found) for found in re.findall(r"tokens read and (\d+) known", errors)]
    assert len(known) == 2 and known[1] >= known[0] + 64, errors
    anew, errors = chat(lines, *ten, "--kv", method, "--budget", budget, "--prefix-memory", "0")
    assert anew == answers and " known at" not in errors and errors.count("earlier tokens of the conversation were read again") == 1, errors


def test_texts_are_known_to_the_next_chat(ten, tmp_path):
    few = [*ten, "--kv", "snapkv:window=8", "--budget", "40", "--texts", str(tmp_path / "texts")]
    answers, errors = chat(["some words to read " * 20, "/stats"], *few)
    assert " known at" not in errors
    again, errors = chat(["some words to read " * 20, "/stats"], *few)
    assert again == answers and int(re.search(r"tokens read and (\d+) known", errors)[1]) >= 64, errors
    assert "--texts-size 1GiB is for a folder" in chat([], *ten, "--texts-size", "1GiB", code=2)[1]
    assert "memory is 0 bytes" in chat([], *few, "--prefix-memory", "0", code=2)[1]


def test_a_reset_forgets(raw_model):
    raw_answers, errors = chat(["hello", "/reset", "hello", "/stats"], "-m", raw_model, "--raw", "-n", "5", "--ignore-eos")
    assert "forgotten" in errors and len(seen(errors)) == 1
    half = len(raw_answers) // 2
    assert raw_answers[:half] == raw_answers[half:], raw_answers


def test_commands(few):
    _, errors = chat(["/help", "/kv", "/kv streaming-llm 30", "/kv", "", "  ", "/exit", "never said"], *few)
    for command in ("/help", "/stats", "/kv [SPEC [BUDGET]]", "/reset", "/save FILE", "/load FILE", "/exit"):
        assert command in errors, command
    assert "full, f16" in errors and "streaming-llm:sinks=4,positions=cache,when=step @ 30, f16 from your first line on" in errors


def test_auto_is_called_auto(few):
    assert "\nauto @ 30, f16\n" in chat(["/kv auto 30", "/kv"], *few)[1]
    assert "\nauto (question-agnostic) @ 30, f16\n" in chat(["/kv auto 30", "/kv"], *few, "--protocol", "question-agnostic")[1]


def test_wrong_commands_are_named_by_line(few):
    answers, errors = chat(["/stast", "/kv snapky", "/kv snapkv", "/kv a b c", "/save", "/load a b", " /words"], *few, code=1)
    lines = errors.splitlines()
    for part in ("line 1: there is no command /stast: did you mean /stats?", "did you mean snapkv", "line 3: snapkv needs a budget",
                 "takes [SPEC [BUDGET]]", "line 5: /save takes FILE, not 0 words", "line 6: /load takes FILE, not 2 words",
                 "6 of 7 lines failed"):  # fmt: skip
        assert sum(part in line for line in lines) == 1, (part, lines)
    assert answers, "the last line was answered"


def test_a_path_is_quoted_as_in_a_shell(few, tmp_path):
    """Each way of quoting names the same file. The words of an unknown command are not parsed."""
    for name in ("my talk.kv", "it's.kv", 'a "b".kv', "back\\slash.kv"):
        for written in (shlex.quote(f"{tmp_path}/{name}"), re.sub(r"([ '\"\\])", r"\\\1", f"{tmp_path}/{name}")):
            errors = chat(["hello", f"/save {written}", f"/load {written}"], *few)[1]
            assert f"saved {tmp_path}/{name}: " in errors and os.path.getsize(tmp_path / name) > 0, (written, errors)
            os.unlink(tmp_path / name)
    errors = chat(["/save 'open", '/save "open', "/save end\\", "/save two words", "/what's that"], *few, code=1)[1]
    for part in ("line 1: a quote ' is not closed", 'line 2: a quote " is not closed', "line 3: a \\ at the end", "line 4: /save takes FILE, not 2 words: put quotes",
                 "line 5: there is no command /what's"):  # fmt: skip
        assert part in errors, (part, errors)


def test_saved_loaded_and_shown_tokens_are_the_same(few, tmp_path):
    errors = chat(["hello", "/stats", f"/save {tmp_path}/talk.kv", f"/load {tmp_path}/talk.kv", "/stats"], *few)[1]
    (before, *_), (after, *_) = seen(errors)
    saved = int(re.search(r"saved .* of (\d+) tokens per head", errors).group(1))
    loaded = int(re.search(r"talk.kv: (\d+) tokens, read with", errors).group(1))
    assert before == saved == loaded == after, errors


def test_wrong_usage(few, raw_model):
    assert chat(["hi"], *few, "-f", "-", code=2)[1].count("\n") == 1
    assert "there is no chat template; messages are rendered with the built-in template chatml" in chat(["hi"], "-m", raw_model, "-n", "1")[1]
    assert "Example" in subprocess.run([WINNOW, "chat", "--help"], capture_output=True, text=True).stdout


def test_answers_that_cannot_be_written(few):
    with open("/dev/full", "w") as full:
        result = subprocess.run([WINNOW, "chat", *few], input="hi\nho\n", stdout=full, stderr=subprocess.PIPE, text=True, timeout=PATIENCE)
    assert result.returncode == 1 and result.stderr.count("cannot write to stdout") == 1, result.stderr


def test_a_conversation_beyond_the_context_warns_once(few):
    errors = chat(["many words " * 30, "more", "and more"], *few)[1]
    assert errors.count("the model's context of 256") == 1, errors



def test_the_text_is_part_of_the_first_turn(few, work):
    with open(f"{work}/text.txt", "w") as file:
        file.write("some words to read " * 20)
    _, errors = chat(["what?", "/stats", "/reset", "why?", "/stats"], *few, "-f", f"{work}/text.txt", "--kv", "snapkv:window=8", "--budget", "50")
    assert [s[1:] for s in seen(errors)] == [(52, 52)] * 2, errors



@pytest.mark.skipif(ADDRESS_SANITIZED, reason="its shadow alone is terabytes")
def test_a_turn_without_memory_leaves_nothing(few):
    command = [WINNOW, "chat", "--temp", "0", *few, "--threads", "1"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"hello\n/stats\n")
    process.stdin.flush()
    errors = b""
    while b"last line" not in errors:
        errors += process.stderr.readline()
    with open(f"/proc/{process.pid}/status") as file:
        used = int(re.search(r"VmPeak:\s+(\d+) kB", file.read()).group(1)) << 10
    resource.prlimit(process.pid, resource.RLIMIT_AS, (used + (12 << 20),) * 2)
    answers, rest = process.communicate(b"some words " * 30_000 + b"\n/stats\nand you?\n", timeout=PATIENCE)
    errors = (errors + rest).decode(errors="replace")
    stats = seen(errors)
    assert process.returncode == 1 and "line 3: " in errors and len(stats) == 2 and stats[0] == stats[1], errors
    assert answers.decode(errors="replace") == chat(["hello", "and you?"], *few, "--threads", "1")[0], "the turn that failed has left nothing"


class Terminal:
    """A program on a pseudo-terminal."""

    def __init__(self, command, environment):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, {**os.environ, "TERM": "xterm", **environment})
        self.all = ""

    def type(self, text):
        os.write(self.fd, text.encode())

    def until(self, pattern, patience=PATIENCE):
        """The output up to the pattern."""
        got, end = "", time.time() + patience
        while time.time() < end:
            if not select.select([self.fd], [], [], 0.1)[0]:
                continue
            try:
                got += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:
                break
            if re.search(pattern, got):
                return got
        raise AssertionError(f"no {pattern!r} in {got!r}")

    def answering(self):
        """Waits until an answer streams. A line of progress, which is overwritten, is no part of it."""
        got = ""
        while len(re.sub(r"\r[^\r\n]*(\x1b\[K|$)|\s", "", got)) < 100:
            got += self.until(r"(?s).")

    def prompted(self):
        """The output up to the prompt. Keys may be typed then, because the line editor has set the terminal up."""
        got = self.until(r"(^|\n|\r|\x1b\[\?2004h)> $")
        wait_for(lambda: not termios.tcgetattr(self.fd)[3] & termios.ICANON)
        return got

    def exit_code(self):
        end = time.time() + PATIENCE
        while time.time() < end:
            try:
                os.read(self.fd, 4096)
            except OSError:
                break
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


@pytest.mark.parametrize("say", ["hello", pytest.param("Tell me a long story.", marks=needs_real_model)])
def test_a_terminal(model, tmp_path, say):
    folder = tmp_path
    command = [WINNOW, "chat", "--threads", "1", "-m", model if say == "hello" else REAL, "-n", "1000000", "--ignore-eos"]
    terminal = Terminal(command, {"XDG_STATE_HOME": f"{folder}/state"})
    assert "/help" in terminal.prompted()
    terminal.type(say + "\n")
    terminal.answering()  # the whole answer would take hours
    terminal.type("\x03")
    terminal.prompted()
    terminal.type("/stats\n")
    stats = terminal.prompted()
    first = seen(stats.replace("\r", ""))
    assert len(first) == 1 and first[0][0] > 10, stats
    terminal.type("given up")
    terminal.until("given up")
    terminal.type("\x03")
    terminal.prompted()
    terminal.type("/stats\n")
    assert seen(terminal.prompted().replace("\r", "")) == first, "a line that was given up is not said"
    terminal.type("\x1b[A\x1b[A\n")  # the history has /stats once, although it was repeated, and the message before it
    terminal.answering()
    terminal.type("\x03")
    terminal.prompted()
    terminal.type("/resett\n")
    assert "did you mean" in terminal.prompted()
    terminal.type("\x04")
    assert terminal.exit_code() == 0, "what went wrong has been seen"
    with open(f"{folder}/state/winnow/chat_history") as file:
        remembered = file.read()
    assert say.replace(" ", r"\040") in remembered and "given" not in remembered, remembered


def test_the_history_is_a_comfort(model, tmp_path):
    folder = tmp_path
    with open(f"{folder}/file", "w"):
        pass
    # A file cannot contain the history.
    terminal = Terminal([WINNOW, "chat", "-m", model, "-n", "3"], {"XDG_STATE_HOME": f"{folder}/file"})
    terminal.prompted()
    terminal.type("hello\n")
    assert "winnow:" not in terminal.prompted()
    terminal.type("/exit\n")
    assert terminal.exit_code() == 0


def test_ctrl_c_ends_a_script(model):
    process = subprocess.Popen([WINNOW, "chat", "-m", model, "-n", "1000000", "--ignore-eos"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdin.write(b"hello\nnever said\n")
    process.stdin.flush()
    process.stdout.read(10)  # the answer has begun
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130, (process.returncode, errors)


def flip(path, at):
    with open(path, "r+b") as file:
        file.seek(at)
        byte = file.read(1)[0]
        file.seek(at)
        file.write(bytes([byte ^ 0x10]))


@pytest.mark.parametrize("method", ["", "--kv h2o --budget 40", "--kv ada-snapkv:window=8 --budget 40 --kv-type q8_0", "--kv snapkv:window=8 --budget 16%",
                                    "--kv quest --budget 64", "--raw --kv streaming-llm --budget 40"])  # fmt: skip
def test_a_saved_conversation_goes_on(model, raw_model, tmp_path, method):
    """A saved conversation continues in another process as it would have here; a file that is no saved conversation
    changes nothing."""
    method, folder = method.split(), tmp_path
    few = ["-m", raw_model if "--raw" in method else model, "-n", "12", "--ignore-eos"]
    saved = f"{folder}/talk.kv"
    begun, unsaved = ["hello", "some words to read " * 3], ["and you?", "what else?"]
    answers, _ = chat([*begun, *unsaved], *few, *method)
    first, errors = chat([*begun, f"/save {saved}"], *few, *method)
    assert answers.startswith(first) and f"saved {saved}: " in errors, errors
    rest, errors = chat(["/stats", *unsaved], *few, "--load-kv", saved)
    assert first + rest == answers, (first, rest, answers)
    assert f"{saved}: " in errors and seen(errors), errors
    assert chat([f"/load {saved}", *unsaved], *few)[0] == rest, "/load is --load-kv"
    assert chat(["never", "/reset", f"/load {saved}", *unsaved, "/stats"], *few, *method)[0].endswith(rest)
    size = os.path.getsize(saved)
    for name, damage in (("cut", lambda path: os.truncate(path, size // 2)), ("flipped", lambda path: flip(path, size // 2))):
        damaged = f"{folder}/{name}.kv"
        shutil.copy(saved, damaged)
        damage(damaged)
        out, errors = chat([*begun, f"/load {damaged}", *unsaved], *few, *method, code=1)
        assert out == answers, "the conversation goes on as if nothing had been"
        assert sum(line.startswith("winnow: line 3: ") and damaged in line for line in errors.splitlines()) == 1, errors
        assert chat(["hi"], *few, "--load-kv", damaged, code=1)[1].count("\n") == 1


def test_what_cannot_be_saved_or_loaded(few, raw_model, tmp_path):
    other, folder = raw_model, tmp_path
    saved = f"{folder}/full.kv"
    lines = [f"/save {saved}", "hello", "/kv streaming-llm 40", f"/save {saved}", "and?", f"/save {saved}", "/save /dev/full", f"/load {folder}/absent", f"/load {other}"]
    errors = chat(lines, *few, code=1)[1]
    for part in ("line 1: there is nothing to save", "line 4: there is no cache to save", "line 7: ", "line 8: ", "is not a saved cache", "5 of 9 lines"):
        assert part in errors, (part, errors)
    assert "was saved with the model" in chat(["hi"], "-m", other, "--load-kv", saved, code=1)[1]
    for option in (["--kv", "full"], ["--budget", "30"], ["--kv-type", "f32"], ["-f", saved], ["--raw"], ["--system", "x"], ["--special"]):
        for command in (["chat"], ["run", "-p", "hi"]):
            result = subprocess.run([WINNOW, *command, *few, "--load-kv", saved, *option], capture_output=True, text=True, timeout=PATIENCE)
            assert result.returncode == 2 and result.stderr.count("\n") == 1, result.stderr
            for part in (option[0], "streaming-llm @ 40, f16", "chat", "after an answer"):
                assert part in result.stderr, (part, result.stderr)


def test_what_run_has_saved_goes_on_in_chat(model, tmp_path):
    folder = tmp_path
    """What run has read is gone on with in chat, and the other way round."""
    text, saved = f"{folder}/words.txt", f"{folder}/run.kv"
    with open(text, "w") as file:
        file.write("some words to read " * 10)
    few = ["-m", model, "-n", "8", "--ignore-eos"]

    def run(*arguments, code=0):
        result = subprocess.run([WINNOW, "run", "--threads", "2", *few, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE)
        assert result.returncode == code, result.stderr
        return result

    run("-f", text, "--kv", "snapkv:window=8", "--budget", "60", "--save-kv", saved)
    asked = run("--load-kv", saved, "-p", "what?").stdout
    answers, errors = chat(["what?", "/stats", "and?", f"/save {saved}.2", "/kv full", "why?", "/stats"], *few, "--load-kv", saved)
    assert answers.startswith(asked), "the same tokens are read after the text"
    (before, _, most), (after, least, _) = seen(errors)
    assert most < before and least == after > before, "read anew from the words that the file holds"
    assert run("--load-kv", f"{saved}.2", "-p", "why?").stdout
    assert "ends with an answer" in run("--load-kv", f"{saved}.2", code=1).stderr
    assert ", 0 messages, " in subprocess.run([WINNOW, "inspect", saved], capture_output=True, text=True).stdout
    shown = json.loads(subprocess.run([WINNOW, "inspect", "--json", f"{saved}.2"], capture_output=True, text=True).stdout)
    assert shown["ends"] == "after an answer" and [m["content"] for m in shown["messages"] if m["role"] == "user"] == ["what?", "and?"] and shown["text_bytes"] == 190, shown
    whole = run("-f", text, "-p", "what?", "--save-kv", saved).stdout
    assert ", 1 message, " in subprocess.run([WINNOW, "inspect", saved], capture_output=True, text=True).stdout
    answered = run("--load-kv", saved)
    assert answered.stdout == whole and "ends with an unanswered question" not in answered.stderr, "the question is answered"
    answers, errors = chat(["and?", "/stats"], *few, "--load-kv", saved)
    other = run("--load-kv", saved, "-p", "and?")
    assert answers == other.stdout
    for said in (errors, other.stderr):
        assert f"{saved} ends with an unanswered question, and yours follows it" in said, said
    run("-f", text, "-p", "what?", "--protocol", "question-agnostic", "--save-kv", saved)
    assert "ends with an unanswered question" not in run("--load-kv", saved, "-p", "and?").stderr, "the text alone was saved"


def test_thoughts_go_to_stderr(thinks, ten):
    said, _ = chat(["hello"], *ten, "-q")
    answers, errors = chat(["hello"], *ten, "--chat-template", thinks)
    assert said.strip() and answers == "\n" and len(errors) > 10, (said, answers, errors)
    assert chat(["hello"], *ten, "--chat-template", thinks, "-q") == ("\n", "")


def test_positions(model):
    """A per-step method uses positions within the cache, unless the spec says otherwise."""
    few = ["-m", model, "-n", "3", "--ignore-eos", "--budget", "40", "--kv"]
    for spec, full in (("h2o", "positions=cache"), ("h2o:positions=absolute", "positions=absolute"), ("ada(h2o)", "positions=cache"), ("snapkv", "positions=absolute")):
        _, errors = chat(["hello", "/stats", f"/kv {spec} 50", "/stats"], *few, spec)
        assert errors.count(full) == 3, (spec, errors)


@needs_real_model
def test_a_real_model_answers():
    model = REAL
    brief = ["-m", model, "-n", "40", "--system", "Answer in a short sentence."]
    answers, _ = chat(["What is the capital of France?", "And of Italy?"], *brief)
    anew, _ = chat(["What is the capital of France?", "/kv full", "And of Italy?"], *brief)
    assert "Paris" in answers and "Rome" in answers, answers
    assert answers == anew, "turns that are appended are read as the whole conversation is"


def test_stats_before_a_line_count_what_it_will_read(work, few):
    """The text is not read before the first message, nor at a reset, which does not forget it."""
    path = f"{work}/unread.txt"
    with open(path, "w") as file:
        file.write("some words to read " * 8)
    errors = chat(["/stats", "one", "/stats", "/reset", "/stats"], *few, "-f", path)[1]
    unread = [int(found) for found in re.findall(r"nothing is cached: your next line also reads the (\d+) tokens before it", errors)]
    assert len(unread) == 2 and unread[0] == unread[1], errors
    read = int(re.search(r"last line: (\d+) tokens read", errors)[1])
    assert len("some words to read " * 8) / 8 < unread[0] < read < 2 * unread[0], errors
