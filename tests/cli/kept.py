"""What `winnow inspect --kept` shows of what a run has kept, and what it says of files that are no such thing.

kept.py WINNOW MAKE_TINY_GGUF      the real model too, where WINNOW_TEST_MODEL names it
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

WINNOW, TINY = sys.argv[1:3]


def run(*arguments, code=0, **environment):
    inherited = {k: v for k, v in os.environ.items() if k not in ("WINNOW_MODEL", "NO_COLOR", "COLUMNS")}
    environment = {**inherited, "LC_ALL": "C.UTF-8", **environment}
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=120, env=environment)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


def check_picture(kept, n_prompt):
    lines = run("inspect", "--kept", kept).stdout.splitlines()
    assert lines[0] == f"snapkv:window=8: {n_prompt} tokens, 40.0 entries per head (40 to 40), {4000 / n_prompt:.1f} % kept in 2 layers of 2 KV heads", lines[0]
    rows = lines[1:5]
    assert [row.split()[0] for row in rows] == ["0.0", "0.1", "1.0", "1.1"]
    assert all(len(row) == 80 and row.split("|")[1][-2:] == "██" for row in rows), "the window is kept: 8 tokens, 3.4 to a column"
    assert all("|" in row and row.endswith(f"{4000 / n_prompt:.1f} %") for row in rows)
    wide = run("inspect", "--kept", kept, COLUMNS="100").stdout.splitlines()
    assert len(wide[1]) == 100
    for environment in ({"NO_COLOR": "1"}, {"LC_ALL": "C"}):
        plain = run("inspect", "--kept", kept, **environment).stdout
        assert plain.isascii() and "##" in plain


def check_densities(folder):
    with open(f"{folder}/four.json", "w") as file:
        json.dump({"spec": "x", "n_prompt": 4, "layers": [[[0, 1, 2, 3], []], [[0], [3]]]}, file)
    rows = run("inspect", "--kept", f"{folder}/four.json", NO_COLOR="1").stdout.splitlines()[1:5]
    assert [row.split("|")[1] for row in rows] == ["####", "    ", "#   ", "   #"], rows


def check_passages(kept, text, model):
    out = run("inspect", "--kept", kept, "--text", text, "--raw", "-m", model).stdout
    passages = out.splitlines()[out.splitlines().index("") + 2 :]
    shares = [float(line.split()[0]) for line in passages]
    assert shares == sorted(shares, reverse=True) and 0 < shares[0] <= 100 and len(passages) <= 10, out
    places = sorted(int(line.split()[2]) for line in passages)
    assert all(b - a >= 16 for a, b in zip(places, places[1:])), "no passage lies over another"
    assert "-m MODEL" in run("inspect", "--kept", kept, "--text", text, code=2).stderr
    with open(text, "a") as file:
        file.write("much more than was read " * 40)
    assert "another text" in run("inspect", "--kept", kept, "--text", text, "--raw", "-m", model, code=1).stderr


def check_drawing(kept, folder):
    assert ".svg" in run("inspect", "--kept", kept, "-o", f"{folder}/kept.pdf", code=2).stderr
    missing = run("inspect", "--kept", kept, "-o", f"{folder}/kept.svg", code=1, PATH=f"{folder}/nothing")
    assert "gnuplot-nox" in missing.stderr and missing.stderr.count("\n") == 1 and not os.path.exists(f"{folder}/kept.svg")
    if not shutil.which("gnuplot"):
        return
    for name, beginning in (("it's kept.svg", b"<?xml"), ("kept.png", b"\x89PNG")):
        run("inspect", "--kept", kept, "-o", f"{folder}/{name}")
        with open(f"{folder}/{name}", "rb") as file:
            assert file.read().startswith(beginning)
    check_labels(f"{folder}/it's kept.svg")
    assert "cannot write" in run("inspect", "--kept", kept, "-o", f"{folder}/nothing/kept.svg", code=1).stderr


def check_labels(svg):
    """All labels lie inside the picture, with their letters, and the axes have numbers."""
    with open(svg) as file:
        drawn = file.read()
    width, height = map(int, re.search(r'width="(\d+)" height="(\d+)"', drawn).groups())
    labels = re.findall(r'translate\(([\d.]+),([\d.]+)\)[^>]* font-size="([\d.]+)"[^>]*>\s*<text>(.*?)</text>', drawn)
    for x, y, size, text in labels:
        inside = float(size) <= float(x) <= width - float(size) and float(size) <= float(y) <= height - float(size)
        assert inside, (text, x, y, size)
    words = {re.sub("<[^>]*>", "", text).strip(): (float(x), float(y)) for x, y, _, text in labels}
    assert {"position in the prompt", "layer", "share of the tokens that is kept"} <= words.keys(), words
    below = [word for word, (x, y) in words.items() if y > height * 0.88 and x < width * 0.85 and word.isdigit()]
    assert len(below) >= 3, below


def check_refusals(kept, folder):
    """One sentence and exit code 1, whatever the file holds."""
    with open(kept, "rb") as file:
        good = file.read()
    bad = {
        "empty": (b"", "byte 1"),
        "cut": (good[: len(good) // 2], "cut"),
        "text": (b"no JSON at all", "no JSON"),
        "bytes": (bytes(range(256)) * 4, "no JSON"),
        "list": (b"[]", "a list"),
        "number": (b"3", "holds 3"),
        "more": (good + b"x", "no JSON"),
        "deep": (b'{"n_prompt":4,"layers":' + b"[" * 1_000_000, "a list stands in 'layers'"),
        "deep object": (b'{"spec":' * 100_000, "an object"),
        "other key": (b'{"model":1}', "'model'"),
        "no length": (b'{"layers":[[[1]]]}', "n_prompt"),
        "length 0": (b'{"n_prompt":0,"layers":[[[1]]]}', "0 is no length"),
        "length negative": (b'{"n_prompt":-4,"layers":[[[1]]]}', "-4"),
        "length huge": (b'{"n_prompt":99999999999,"layers":[[[1]]]}', "99999999999"),
        "length beyond": (b'{"n_prompt":123456789012345678901234567890,"layers":[[[1]]]}', "n_prompt"),
        "length text": (b'{"n_prompt":"4","layers":[[[1]]]}', "a string"),
        "no layers": (b'{"n_prompt":4}', "no layers"),
        "empty layers": (b'{"n_prompt":4,"layers":[]}', "no layers"),
        "empty layer": (b'{"n_prompt":4,"layers":[[]]}', "no layers"),
        "layers twice": (b'{"n_prompt":4,"layers":[[[1]]],"layers":[[[1]]]}', "twice"),
        "too flat": (b'{"n_prompt":4,"layers":[[1]]}', "1 stands in 'layers'"),
        "null": (b'{"n_prompt":4,"layers":[[null]]}', "null"),
        "negative": (b'{"n_prompt":4,"layers":[[[-1]]]}', "-1"),
        "beyond": (b'{"n_prompt":4,"layers":[[[1,4]]]}', "4 of 4"),
        "not ascending": (b'{"n_prompt":4,"layers":[[[2,2]]]}', "2 after 2"),
        "fraction": (b'{"n_prompt":4,"layers":[[[1.5]]]}', "1.5"),
        "ragged": (b'{"n_prompt":4,"layers":[[[1]],[[1],[2]]]}', "layer 1 has 2 heads"),
    }
    for name, (data, part) in bad.items():
        with open(f"{folder}/bad.json", "wb") as file:
            file.write(data)
        result = run("inspect", "--kept", f"{folder}/bad.json", code=1)
        assert result.stderr.count("\n") == 1 and part in result.stderr and not result.stdout, (name, result.stderr)
    for path, part in ((f"{folder}/absent.json", "No such file"), (folder, "folder"), ("/dev/zero", "it is a device")):
        assert part in run("inspect", "--kept", path, code=1).stderr, path
    with open(f"{folder}/escape.json", "w") as file:
        json.dump({"spec": "\x1b[31m\n", "n_prompt": 1, "layers": [[[0]]]}, file)
    assert "\x1b" not in run("inspect", "--kept", f"{folder}/escape.json").stdout
    assert run("inspect", code=2).stderr.count("\n") == 1
    assert run("inspect", "--text", "x", code=2).stderr.count("\n") == 1


def check_real(model, folder):
    text = f"{folder}/story.txt"
    with open(text, "w") as file:
        file.write("The weather was fine and nothing happened that day. " * 20 + "The secret word is xylophone. " + "They went home again at last. " * 20)
    run("run", "-m", model, "-f", text, "-p", "What is the secret word?", "--kv", "snapkv", "--budget", "80", "-n", "1", "--dump-kept", f"{folder}/real.json")
    out = run("inspect", "--kept", f"{folder}/real.json", "--text", text, "-m", model).stdout
    assert "xylophone" in out, "what answers the question is kept by most heads"


with tempfile.TemporaryDirectory() as work:
    tiny, words = f"{work}/tiny.gguf", f"{work}/text.txt"
    subprocess.run([TINY, tiny], check=True)
    with open(words, "w") as out_file:
        out_file.write("some words to read " * 8)
    dumped = f"{work}/kept.json"
    run("run", "-m", tiny, "-f", words, "--raw", "-p", "and?", "-n", "1", "--kv", "snapkv:window=8", "--budget", "40", "--dump-kept", dumped)
    with open(dumped) as in_file:
        check_picture(dumped, json.load(in_file)["n_prompt"])
    check_densities(work)
    check_passages(dumped, words, tiny)
    check_drawing(dumped, work)
    check_refusals(dumped, work)
    if os.environ.get("WINNOW_TEST_MODEL"):
        check_real(os.environ["WINNOW_TEST_MODEL"], work)
print("all as expected")
