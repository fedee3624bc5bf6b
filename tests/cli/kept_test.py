# SPDX-License-Identifier: Apache-2.0
"""`winnow inspect --kept`: pictures of kept positions, and errors for other files."""

import json
import os
import re
import shutil
import subprocess

import pytest
from program import PATIENCE, WINNOW, make_tiny_gguf


def run(*arguments, code=0, **environment):
    environment = {**os.environ, "LC_ALL": "C.UTF-8", **environment}
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE, env=environment)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


@pytest.fixture(scope="module")
def text(work):
    with open(f"{work}/text.txt", "w") as file:
        file.write("some words to read " * 8)
    return f"{work}/text.txt"


@pytest.fixture(scope="module")
def kept(work, model, text):
    run("run", "-m", model, "-f", text, "--raw", "-p", "and?", "-n", "1", "--kv", "snapkv:window=8", "--budget", "40", "--dump-kept", f"{work}/kept.json")
    return f"{work}/kept.json"


def test_the_picture_has_a_row_for_each_head(kept):
    with open(kept) as file:
        n_prompt = json.load(file)["n_prompt"]
    lines = run("inspect", "--kept", kept).stdout.splitlines()
    assert lines[0] == f"snapkv:window=8: {n_prompt} tokens, 40.0 entries per head (40 to 40), {4000 / n_prompt:.1f} % kept in 2 layers of 2 KV heads", lines[0]
    rows = lines[1:5]
    assert [row.split()[0] for row in rows] == ["0.0", "0.1", "1.0", "1.1"]
    assert all(len(row) == 80 and row.split("|")[1][-2:] == "██" for row in rows), "the window is kept: 8 tokens, 3.4 to a column"
    assert all("|" in row and row.endswith(f"{4000 / n_prompt:.1f} %") for row in rows)


def test_layers_with_windows_are_no_choice_of_the_method(work, text):
    model, kept = make_tiny_gguf(f"{work}/windows.gguf", "gemma3"), f"{work}/windows.json"
    run("run", "-m", model, "-f", text, "--raw", "-p", "and?", "-n", "1", "--kv", "knorm", "--budget", "5", "--dump-kept", kept)
    with open(kept) as file:
        dump = json.load(file)
    assert dump["windows"] == [8] * 5 + [0, 8]
    assert [len(layer[0]) for layer in dump["layers"]] == [8] * 5 + [5, 8]
    lines = run("inspect", "--kept", kept).stdout.splitlines()
    assert f"5.0 entries per head (5 to 5), {500 / dump['n_prompt']:.1f} % kept in 1 layer of 2 KV heads" in lines[0], lines[0]
    assert [row.endswith(" window") for row in lines[1:15]] == [True] * 10 + [False] * 2 + [True] * 2
    assert len({len(row) for row in lines[1:15]}) == 1 and lines[-1].startswith("window: ")
    passages = run("inspect", "--kept", kept, "--text", text, "--raw", "-m", model).stdout.splitlines()
    shares = [float(line.split()[0]) for line in passages[passages.index("") + 2 :]]
    assert 0 < sum(shares) / 100 * 16 <= 5.2, "of the five entries in each head of the one layer"


def test_the_picture_fits_the_terminal(kept):
    wide = run("inspect", "--kept", kept, COLUMNS="100").stdout.splitlines()
    assert len(wide[1]) == 100


def test_the_picture_is_plain_where_it_must_be(kept):
    for environment in ({"NO_COLOR": "1"}, {"LC_ALL": "C"}):
        plain = run("inspect", "--kept", kept, **environment).stdout
        assert plain.isascii() and "##" in plain


def test_a_column_shows_the_share_that_is_kept(work):
    with open(f"{work}/four.json", "w") as file:
        json.dump({"spec": "x", "n_prompt": 4, "layers": [[[0, 1, 2, 3], []], [[0], [3]]]}, file)
    rows = run("inspect", "--kept", f"{work}/four.json", NO_COLOR="1").stdout.splitlines()[1:5]
    assert [row.split("|")[1] for row in rows] == ["####", "    ", "#   ", "   #"], rows


def test_passages_that_most_heads_keep(kept, text, model, work):
    out = run("inspect", "--kept", kept, "--text", text, "--raw", "-m", model).stdout
    passages = out.splitlines()[out.splitlines().index("") + 2 :]
    shares = [float(line.split()[0]) for line in passages]
    assert shares == sorted(shares, reverse=True) and 0 < shares[0] <= 100 and len(passages) <= 10, out
    places = sorted(int(line.split()[2]) for line in passages)
    assert all(b - a >= 16 for a, b in zip(places, places[1:])), "no passage lies over another"
    assert "-m MODEL" in run("inspect", "--kept", kept, "--text", text, code=2).stderr
    with open(f"{work}/longer.txt", "w") as file:
        file.write("much more than was read " * 40)
    assert "another text" in run("inspect", "--kept", kept, "--text", f"{work}/longer.txt", "--raw", "-m", model, code=1).stderr


def written(path, text):
    with open(path, "w") as file:
        file.write(text)
    return path


def test_passages_of_another_text_are_refused(kept, text, model, work):
    """With fewer tokens or one word changed, the error names the numbers of tokens of both texts."""
    with open(text) as file, open(kept) as dump:
        words, tokens = file.read(), json.load(dump)["text_tokens"]
    changed = written(f"{work}/changed.txt", words.replace("words", "lords", 1))
    for other in (written(f"{work}/short.txt", "ab"), changed):
        refused = run("inspect", "--kept", kept, "--text", other, "-m", model, "--raw", code=1)
        assert f"is of {tokens} tokens" in refused.stderr and re.search(rf"{other} gives \d+ with", refused.stderr), refused.stderr
        assert refused.stderr.count("\n") == 1 and not refused.stdout


@pytest.fixture(scope="module")
def chat_model(work):
    return make_tiny_gguf(f"{work}/chat.gguf", "llama", "chatml")


def test_another_template_and_system_message_are_refused(text, chat_model, work):
    run("run", "-m", chat_model, "-f", text, "-p", "and?", "-n", "1", "--system", "Answer.", "--dump-kept", f"{work}/framed.json")
    shown = ["inspect", "--kept", f"{work}/framed.json", "--text", text, "-m", chat_model]
    assert "passages" in run(*shown, "--system", "Answer.").stdout
    for options in ((), ("--raw",), ("--system", "Answer!")):
        assert "template (--raw) or system message" in run(*shown, *options, code=1).stderr, options


def test_the_text_is_that_of_the_run_whatever_its_question(text, chat_model, work):
    """Several questions, no question, a text alone and a saved cache all refer to the same text."""
    model = chat_model
    asked = [("-p", "and?", "-p", "or?"), (), ("--save-kv", f"{work}/text.kv")]
    for number, questions in enumerate(asked):
        run("run", "-m", model, "-f", text, "-n", "1", *questions, "--dump-kept", f"{work}/same{number}.json")
    run("run", "-m", model, "--load-kv", f"{work}/text.kv", "-p", "and?", "-n", "1", "--dump-kept", f"{work}/same3.json")
    names = ["same0.json.1", "same0.json.2", "same1.json", "same2.json", "same3.json"]
    for name in names:
        assert "passages" in run("inspect", "--kept", f"{work}/{name}", "--text", text, "-m", model).stdout, name


def test_a_question_alone_has_no_text(text, model, work):
    run("run", "-m", model, "--raw", "-p", "some words to read", "-n", "1", "--dump-kept", f"{work}/question.json")
    refused = run("inspect", "--kept", f"{work}/question.json", "--text", text, "--raw", "-m", model, code=1)
    assert "without a text" in refused.stderr, refused.stderr


def test_a_file_of_an_earlier_version_is_checked_by_its_length(kept, text, model, work):
    with open(kept) as file:
        old = {key: value for key, value in json.load(file).items() if not key.startswith("text_")}
    written(f"{work}/old.json", json.dumps(old))
    taken = run("inspect", "--kept", f"{work}/old.json", "--text", text, "--raw", "-m", model)
    assert "passages" in taken.stdout and re.search(rf"assuming that it is {text}, the first \d+ tokens of its {old['n_prompt']}", taken.stderr), taken.stderr
    longer = written(f"{work}/older.txt", "much more than was read " * 40)
    refused = run("inspect", "--kept", f"{work}/old.json", "--text", longer, "--raw", "-m", model, code=1)
    assert f"at {old['n_prompt']}" in refused.stderr, refused.stderr


def test_drawing_needs_gnuplot_and_a_name_for_a_picture(kept, work):
    assert ".svg" in run("inspect", "--kept", kept, "-o", f"{work}/kept.pdf", code=2).stderr
    missing = run("inspect", "--kept", kept, "-o", f"{work}/none.svg", code=1, PATH=f"{work}/nothing")
    assert "gnuplot-nox" in missing.stderr and missing.stderr.count("\n") == 1 and not os.path.exists(f"{work}/none.svg")


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_a_picture_is_drawn(kept, work):
    for name, beginning in (("it's kept.svg", b"<?xml"), ("kept.png", b"\x89PNG")):
        run("inspect", "--kept", kept, "-o", f"{work}/{name}")
        with open(f"{work}/{name}", "rb") as file:
            assert file.read().startswith(beginning)
    with open(f"{work}/photo.png", "wb") as file:
        file.write(b"not winnow's")
    assert "already exists" in run("inspect", "--kept", kept, "-o", f"{work}/photo.png", code=1).stderr
    with open(f"{work}/photo.png", "rb") as file:
        assert file.read() == b"not winnow's"
    assert "cannot write" in run("inspect", "--kept", kept, "-o", f"{work}/nothing/kept.svg", code=1).stderr


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_labels_fit_into_the_picture(kept, work):
    """All labels lie completely inside the picture, and the axes have numbers."""
    run("inspect", "--kept", kept, "-o", f"{work}/labels.svg")
    with open(f"{work}/labels.svg") as file:
        drawn = file.read()
    width, height = map(int, re.search(r'width="(\d+)" height="(\d+)"', drawn).groups())
    labels = re.findall(r'translate\(([\d.]+),([\d.]+)\)[^>]* font-size="([\d.]+)"[^>]*>\s*<text>(.*?)</text>', drawn)
    for x, y, size, text in labels:
        inside = float(size) <= float(x) <= width - float(size) and float(size) <= float(y) <= height - float(size)
        assert inside, (text, x, y, size)
    words = {re.sub("<[^>]*>", "", text).strip(): (float(x), float(y)) for x, y, _, text in labels}
    assert {"position in the prompt", "layer", "share of kept tokens"} <= words.keys(), words
    below = [word for word, (x, y) in words.items() if y > height * 0.88 and x < width * 0.85 and word.isdigit()]
    assert len(below) >= 3, below


BAD = [
    ("empty", b"", "byte 1"),
    ("cut", lambda good: good[: len(good) // 2], "cut"),
    ("text", b"no JSON at all", "not valid JSON"),
    ("bytes", bytes(range(256)) * 4, "not valid JSON"),
    ("list", b"[]", "a list"),
    ("number", b"3", "holds 3"),
    ("more", lambda good: good + b"x", "not valid JSON"),
    ("deep", b'{"n_prompt":4,"layers":' + b"[" * 1_000_000, "a list is not possible in 'layers'"),
    ("deep object", b'{"spec":' * 100_000, "an object"),
    ("other key", b'{"model":1}', "'model'"),
    ("no length", b'{"layers":[[[1]]]}', "n_prompt"),
    ("length 0", b'{"n_prompt":0,"layers":[[[1]]]}', "0 is not a length"),
    ("length negative", b'{"n_prompt":-4,"layers":[[[1]]]}', "-4"),
    ("length huge", b'{"n_prompt":99999999999,"layers":[[[1]]]}', "99999999999"),
    ("length beyond", b'{"n_prompt":123456789012345678901234567890,"layers":[[[1]]]}', "n_prompt"),
    ("length text", b'{"n_prompt":"4","layers":[[[1]]]}', "a string"),
    ("no layers", b'{"n_prompt":4}', "no layers"),
    ("empty layers", b'{"n_prompt":4,"layers":[]}', "no layers"),
    ("empty layer", b'{"n_prompt":4,"layers":[[]]}', "no layers"),
    ("layers twice", b'{"n_prompt":4,"layers":[[[1]]],"layers":[[[1]]]}', "twice"),
    ("too flat", b'{"n_prompt":4,"layers":[[1]]}', "1 is not possible in 'layers'"),
    ("null", b'{"n_prompt":4,"layers":[[null]]}', "null"),
    ("negative", b'{"n_prompt":4,"layers":[[[-1]]]}', "-1"),
    ("beyond", b'{"n_prompt":4,"layers":[[[1,4]]]}', "4 of 4"),
    ("not ascending", b'{"n_prompt":4,"layers":[[[2,2]]]}', "2 after 2"),
    ("fraction", b'{"n_prompt":4,"layers":[[[1.5]]]}', "1.5"),
    ("other windows", b'{"n_prompt":4,"layers":[[[1]]],"windows":[1,2]}', "windows for 2 layers, but 1"),
    ("deep windows", b'{"n_prompt":4,"windows":[[1]]}', "a list is not possible in 'windows'"),
    ("negative window", b'{"n_prompt":4,"windows":[-1]}', "-1"),
    ("half a text", b'{"n_prompt":4,"text_tokens":3,"layers":[[[1]]]}', "only one of text_tokens and text_hash"),
    ("long text", b'{"n_prompt":4,"text_tokens":99999999999}', "99999999999 is not a length of a text"),
    ("text negative", b'{"n_prompt":4,"text_tokens":-1}', "-1"),
    ("hash a number", b'{"n_prompt":4,"text_hash":1}', "1 is not possible in 'text_hash'"),
    ("ragged", b'{"n_prompt":4,"layers":[[[1]],[[1],[2]]]}', "layer 1 has 2 heads"),
]


@pytest.mark.parametrize("data, part", [pytest.param(data, part, id=name) for name, data, part in BAD])
def test_what_is_no_such_file_is_refused(kept, work, data, part):
    """Exit code 1 and one sentence for any file."""
    with open(kept, "rb") as file:
        good = file.read()
    with open(f"{work}/bad.json", "wb") as file:
        file.write(data(good) if callable(data) else data)
    result = run("inspect", "--kept", f"{work}/bad.json", code=1)
    assert result.stderr.count("\n") == 1 and part in result.stderr and not result.stdout, result.stderr


def test_what_cannot_be_read_is_named(work):
    for path, part in ((f"{work}/absent.json", "No such file"), (work, "folder"), ("/dev/zero", "it is a device")):
        assert part in run("inspect", "--kept", path, code=1).stderr, path


def test_control_characters_are_not_sent_to_the_terminal(work):
    with open(f"{work}/escape.json", "w") as file:
        json.dump({"spec": "\x1b[31m\n", "n_prompt": 1, "layers": [[[0]]]}, file)
    assert "\x1b" not in run("inspect", "--kept", f"{work}/escape.json").stdout


def test_wrong_usage():
    assert run("inspect", code=2).stderr.count("\n") == 1
    assert run("inspect", "--text", "x", code=2).stderr.count("\n") == 1


@pytest.mark.skipif("WINNOW_TEST_MODEL" not in os.environ, reason="WINNOW_TEST_MODEL is not set")
def test_what_answers_the_question_is_kept_by_most_heads(work):
    real = os.environ["WINNOW_TEST_MODEL"]
    text = f"{work}/story.txt"
    with open(text, "w") as file:
        file.write("The weather was fine and nothing happened that day. " * 20 + "The secret word is xylophone. " + "They went home again at last. " * 20)
    run("run", "-m", real, "-f", text, "-p", "What is the secret word?", "--kv", "snapkv", "--budget", "80", "-n", "1", "--dump-kept", f"{work}/real.json")
    out = run("inspect", "--kept", f"{work}/real.json", "--text", text, "-m", real).stdout
    assert "xylophone" in out, "what answers the question is kept by most heads"
