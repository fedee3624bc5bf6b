# SPDX-License-Identifier: Apache-2.0
"""Typing in `winnow chat`, as a terminal shows it. The terminal is tmux, which can paste, resize and rewrap lines."""

import json
import os
import shutil
import subprocess
import time

import pytest
from program import PATIENCE, WINNOW, make_tiny_gguf, wait_for

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed (Debian: tmux)")


class Screen:
    """A tmux window that runs `winnow chat`."""

    def __init__(self, folder, *arguments, columns=80):
        self.socket = f"{folder}/tmux"
        self.errors = f"{folder}/errors"
        command = f"echo before; exec {WINNOW} chat {' '.join(arguments)} 2>{self.errors}"
        environment = {**os.environ, "XDG_STATE_HOME": f"{folder}/state", "LC_ALL": "C.UTF-8"}
        subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, "new-session", "-d", "-x", str(columns), "-y", "40", "-c", str(folder), command], env=environment, check=True)
        # Tmux moves rows that are cleared from the top into its history; `before` keeps the prompt off the top.
        self.until(lambda rows: rows == [">"])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True)

    def tmux(self, *arguments):
        return subprocess.run(["tmux", "-S", self.socket, *arguments], check=True, capture_output=True, text=True).stdout

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def paste(self, text):
        self.tmux("set-buffer", text)
        self.tmux("paste-buffer", "-p", "-r")

    def rows(self):
        rows = [row.rstrip() for row in self.tmux("capture-pane", "-p").split("\n")]
        while rows and not rows[-1]:
            rows.pop()
        # After some resizes tmux has moved that row into its history.
        return rows[1:] if rows[:1] == ["before"] else rows

    def until(self, holds):
        end = time.monotonic() + PATIENCE
        while not holds(rows := self.rows()):
            assert time.monotonic() < end, "\n".join(rows)
            time.sleep(0.02)

    def said(self):
        """The user's messages so far, read from the saved conversation."""
        self.keys("C-u")
        self.type("/save talk.kv")
        self.keys("Enter")
        saved = os.path.join(os.path.dirname(self.socket), "talk.kv")
        wait_for(lambda: "saved talk.kv: " in open(self.errors).read())
        shown = json.loads(subprocess.run([WINNOW, "inspect", "--json", saved], capture_output=True, text=True, check=True).stdout)
        return [m["content"] for m in shown["messages"] if m["role"] == "user"]


@pytest.fixture(scope="module")
def model(work):
    return make_tiny_gguf(f"{work}/terminal.gguf", "llama", "chatml")


@pytest.fixture
def screen(model, tmp_path):
    with Screen(tmp_path, "-m", model, "-n", "1", "--threads", "1", "-q") as one:
        yield one


def answered(before):
    """Whether one more answer and the next prompt are there."""
    return lambda rows: rows and rows[-1] == ">" and len(rows) > before


def test_pasted_lines_are_one_turn(screen):
    screen.paste("one\n\ttwo\n\nfour: ö€😀\n")
    screen.until(lambda rows: any("four: ö€😀" in row for row in rows))
    screen.type("five")
    screen.until(lambda rows: rows[-1] == "five")
    before = len(screen.rows())
    screen.keys("Enter")
    screen.until(answered(before))
    assert screen.said() == ["one\n\ttwo\n\nfour: ö€😀\nfive"]


def test_more_lines_may_be_typed(screen):
    screen.type("one")
    screen.keys("M-Enter")
    screen.type("two\\")
    screen.keys("Enter")
    screen.until(lambda rows: rows == ["> one", "two\\", "."])
    screen.type("three")
    screen.keys("Enter")
    screen.until(answered(3))
    screen.keys("Up")  # the history has the whole message
    screen.until(lambda rows: rows[-3:] == ["> one", "two", "three"])
    assert screen.said() == ["one\ntwo\nthree"]


def test_commands_are_explained_while_they_are_typed(screen):
    screen.type("/")
    screen.until(lambda rows: "/help /stats /kv /reset /save /load /exit" in rows[0])
    screen.type("st")
    screen.until(lambda rows: rows[0].startswith("> /st ") and "tokens, entries and bytes" in rows[0])
    screen.type("x")
    screen.until(lambda rows: "no such command" in rows[0])
    screen.keys("BSpace", "BSpace")
    screen.type("ave ")
    screen.until(lambda rows: "FILE: write the conversation" in rows[0])
    screen.keys("C-u")
    screen.type("words")
    screen.until(lambda rows: rows == ["> words"])
    screen.keys("C-u")
    screen.type("/reset")
    screen.until(lambda rows: "forget" in rows[0])
    screen.keys("Enter")
    screen.until(lambda rows: rows[0] == "> /reset" and rows[-1] == ">")


def test_tab_completes_commands_methods_and_paths(screen, tmp_path):
    (tmp_path / "some folder").mkdir()
    screen.type("/sa")
    screen.keys("Tab")
    screen.until(lambda rows: rows[0].startswith("> /save "))
    screen.type("som")
    screen.keys("Tab")
    screen.until(lambda rows: "> /save some\\ folder/" in rows[0] or "> /save some folder/" in rows[0])
    screen.keys("C-u")
    screen.type("/kv stream")
    screen.keys("Tab")
    screen.until(lambda rows: rows[-1].startswith("> /kv streaming-llm "))
    screen.keys("C-u")
    screen.type("/kv snap")
    screen.keys("Tab")
    screen.until(lambda rows: rows[-1].startswith("> /kv snapkv"))
    screen.keys("C-u")
    screen.type("/kv ada-")
    screen.keys("Tab")
    screen.until(lambda rows: any("ada-snapkv  ada-pyramid" in row for row in rows) and rows[-1].startswith("> /kv ada-"))
    screen.keys("C-u")
    screen.type("a word")
    screen.keys("Tab")
    screen.until(lambda rows: rows[-1].startswith("> a word"))


def test_a_completed_path_with_a_space_is_taken(screen, tmp_path):
    (tmp_path / "some folder").mkdir()
    screen.type("hello")
    screen.keys("Enter")
    screen.type("/save som")
    screen.keys("Tab")
    screen.until(lambda rows: "some\\ folder/" in rows[-1])
    screen.type("talk.kv")
    screen.keys("Enter")
    wait_for((tmp_path / "some folder/talk.kv").exists)


@pytest.mark.parametrize("columns", [30, 47, 120])
def test_a_line_survives_a_window_of_another_size(screen, columns):
    screen.type("a line " * 20 + "ends")
    screen.until(lambda rows: rows[-1].endswith("ends"))
    screen.tmux("resize-window", "-x", str(columns), "-y", "40")
    whole = "> " + "a line " * 20 + "ends"

    def is_whole(rows):
        return "".join(row.ljust(columns) for row in rows).rstrip() == whole

    screen.until(is_whole)
    screen.type("!")
    whole += "!"
    screen.until(is_whole)
    screen.keys("C-a")
    screen.type("x")
    whole = "> x" + whole[2:]
    screen.until(is_whole)
