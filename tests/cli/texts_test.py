# SPDX-License-Identifier: Apache-2.0
"""Files and pipes that a command reads as texts: errors name what is not a text, and pipes are read."""

import bz2
import gzip
import json
import lzma
import os
import subprocess
import zipfile

import pytest
from program import PATIENCE, WINNOW, check_refusal, lines_of

WORDS = "Würde man so etwas glauben? Sûrement pas.\n"
KINDS = {
    "PDF": (lambda path: path.write_bytes(b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj"), "PDF document", "pdftotext"),
    "gzip": (lambda path: path.write_bytes(gzip.compress(WORDS.encode())), "gzip", "gunzip -c"),
    "bzip2": (lambda path: path.write_bytes(bz2.compress(WORDS.encode())), "bzip2", "bunzip2 -c"),
    "xz": (lambda path: path.write_bytes(lzma.compress(WORDS.encode())), "xz", "xz -dc"),
    "zip": (lambda path: zipfile.ZipFile(path, "w").writestr("word/document.xml", WORDS), "docx", "pandoc"),
    "PNG": (lambda path: path.write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"), "image (PNG)", "tesseract"),
    "JPEG": (lambda path: path.write_bytes(b"\xff\xd8\xff\xe0\0\x10JFIF"), "image (JPEG)", "tesseract"),
    "GGUF": (lambda path: path.write_bytes(b"GGUF\3\0\0\0"), "model (GGUF)", "not text"),
    "UTF-16": (lambda path: path.write_text(WORDS, "utf-16"), "UTF-16", "iconv -f UTF-16 "),
    "UTF-32": (lambda path: path.write_text(WORDS, "utf-32"), "UTF-32", "iconv -f UTF-32 "),
}
ENCODINGS = {
    "UTF-16 without a mark": (WORDS.encode("utf-16-le"), ["UTF-16LE", "iconv -f UTF-16LE"]),
    "Latin-1": (("plain words\n" * 3 + WORDS).encode("latin-1"), ["not UTF-8", "byte 37 (line 4) is 0xfc", "iconv -f LATIN1"]),
    "Windows-1252": (f"\u201c{WORDS}\u201d".encode("cp1252"), ["byte 0 (line 1) is 0x93", "iconv -f WINDOWS-1252"]),
    "damaged": (WORDS.encode() + b"\xff" + WORDS.encode(), [f"byte {len(WORDS.encode())} (line 2) is 0xff", "iconv -c -f UTF-8"]),
    "zero": (b"some\0words", ["byte 4 (line 1) is zero"]),
    "an odd number of bytes": (b"a\0b", ["not text", "byte 1 (line 1) is zero"]),
    "empty": (b"", ["is empty"]),
}


@pytest.fixture(scope="module")
def start(model):
    return [WINNOW, "run", "-m", model, "--raw", "-n", "3", "--ignore-eos"]


def run(command, **options):
    return subprocess.run(command, capture_output=True, timeout=PATIENCE, **options)


def refused(command, *parts, **options):
    result = run(command, **options)
    check_refusal(subprocess.CompletedProcess(command, result.returncode, result.stdout.decode(), result.stderr.decode()), 1, *parts)
    return result.stderr.decode()


@pytest.mark.parametrize("kind", KINDS)
def test_a_file_that_is_no_text_is_named(start, model, tmp_path, kind):
    make, *parts = KINDS[kind]
    path = tmp_path / "the file"
    make(path)
    errors = refused([*start, "-f", path, "-p", "and?"], str(path), *parts)
    assert "not text" in errors or f"'{path}'" in errors, errors  # quoted for a shell
    refused([*start, "-p", "and?"], "stdin", *parts, input=path.read_bytes())
    for command in (["run", "-m", model, "--raw", "--jsonl", path, "-o", tmp_path / "out"], ["chat", "-m", model, "--raw", "-f", path],
                    ["docs", "add", "-m", model, "--store", tmp_path / "store", path], ["calibrate", model, path, "--raw", "-o", tmp_path / "cal"],
                    ["tune", "-m", model, "--raw", "-f", path], ["eval", f"{path}.jsonl", "-m", model, "--raw", "-o", tmp_path / "records"]):
        if command[0] == "eval":
            path.rename(f"{path}.jsonl")
        refused([WINNOW, *command], str(path), parts[0], stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_text_in_another_encoding_is_refused(start, tmp_path, name):
    data, parts = ENCODINGS[name]
    path = tmp_path / "words.txt"
    path.write_bytes(data)
    refused([*start, "-f", path], str(path), *parts)


def test_the_command_that_a_refusal_names_makes_a_text_of_it(start, tmp_path):
    path = tmp_path / "it's Latin.txt"
    path.write_bytes(WORDS.encode("latin-1"))
    command = refused([*start, "-f", path]).split("`")[1]
    subprocess.run(["sh", "-c", command], check=True, cwd=tmp_path)
    assert (tmp_path / "text.txt").read_text() == WORDS
    assert run([*start, "-f", tmp_path / "text.txt"]).returncode == 0


def test_a_text_that_is_cut_within_a_character_is_read(start, tmp_path):
    path = tmp_path / "cut.txt"
    path.write_bytes("Sûr".encode()[:2])
    result = run([*start, "-f", path])
    assert result.returncode == 0 and b"ends in the middle of a character" in result.stderr, result.stderr


def answer(result):
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_piped_text_is_what_a_file_would_be(start, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("some words to read " * 8)
    of_file = answer(run([*start, "-f", path, "-p", "and?", "--json"]))
    piped = run([*start, "-p", "and?", "--json"], input=path.read_bytes())
    with path.open() as text:
        redirected = run([*start, "-p", "and?", "--json"], stdin=text)
    for result in (piped, redirected):
        assert "152 B" in result.stderr.decode()
        assert [answer(result)[key] for key in ("answer", "tokens")] == [of_file[key] for key in ("answer", "tokens")]
    alone = answer(run([*start, "--json"], input=path.read_bytes()))
    assert alone["tokens"]["prompt"] < of_file["tokens"]["prompt"]


def test_without_a_text_the_prompt_is_the_question_alone(start):
    command = [*start, "-p", "and?", "--json"]
    wanted = answer(run(command, stdin=subprocess.DEVNULL))
    closed = run(["sh", "-c", 'exec "$0" "$@" <&-', *command])
    for result in (run(command, input=b""), closed):
        assert answer(result)["tokens"] == wanted["tokens"] and "text" not in result.stderr.decode()
    check = run(start, input=b"")
    assert check.returncode == 2 and b"no prompt" in check.stderr


def test_what_a_file_or_saved_cache_answers_leaves_stdin_alone(start, tmp_path):
    """In a shell loop that reads lines from stdin, winnow does not consume them."""
    path = tmp_path / "text.txt"
    path.write_text("some words to read " * 8)
    loop = 'while read line; do "$0" "$@" -q -p "$line" >/dev/null && echo "$line"; done'
    assert run(["sh", "-c", loop, *start, "-f", path], input=b"one\ntwo\n").stdout == b"one\ntwo\n"
    assert run([*start, "-f", path, "--save-kv", tmp_path / "text.kv"]).returncode == 0
    loaded = [WINNOW, "run", "-m", start[3], "-n", "3", "--load-kv", tmp_path / "text.kv"]
    assert run(["sh", "-c", loop, *loaded], input=b"one\ntwo\n").stdout == b"one\ntwo\n"


def test_an_open_pipe_is_not_waited_for_in_silence(start):
    read, write = os.pipe()
    with subprocess.Popen([*start, "-p", "and?"], stdin=read, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        os.close(read)
        assert "still waiting for the text on stdin" in process.stderr.readline()
        os.write(write, b"some words")
        os.close(write)
        output, errors = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0 and output and "10 B" in errors, errors
