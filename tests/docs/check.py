"""Checks the fenced blocks of README.md and docs/*.md, so that they cannot fall behind the program.

check.py SOURCE WINNOW      with the model in WINNOW_TEST_MODEL (skipped without it)

    ```sh run     the block is run by bash in an empty folder with model.gguf, long.txt and prompts.jsonl
    ```sh         `winnow run` lines are run with --dry-run, other `winnow` lines as they are; `make` lines must name a target
    ```… FILE     the block's lines stand in FILE, in this order, apart from white space (code and transcripts that a test or a program makes)

Other blocks are not looked at.
"""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

SKIPPED = 77
FENCE = re.compile(r"^```(\w+)[ ]?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def prepare(folder, source, winnow):
    """A folder in which the documents' file names exist; returns the environment in which `winnow` is the one under test."""
    os.symlink(os.environ["WINNOW_TEST_MODEL"], folder / "model.gguf")
    text = (source / "examples/demo/war-and-peace.txt").read_text()[:3000]
    (folder / "long.txt").write_text(text)
    (folder / "prompts.jsonl").write_text(json.dumps({"text": text, "question": "Who is speaking?"}) + "\n")
    return {**os.environ, "PATH": f"{winnow.parent}:{os.environ['PATH']}"}


def run(command, folder, environment):
    """What went wrong, or nothing."""
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, errors="replace", timeout=300)
    return result.stderr.strip() or f"exit code {result.returncode}" if result.returncode else ""


def check_line(line, source, folder, environment):
    words = shlex.split(line, comments=True)
    if words[:2] == ["winnow", "run"]:
        return run([*words, "--dry-run"], folder, environment)
    if words[:1] == ["winnow"]:
        return run(words, folder, environment)
    if words[:1] == ["make"]:
        return run([*words, "--dry-run", "-C", str(source)], folder, environment)
    return ""


def check_excerpt(block, file):
    """Every line of the block, in order, among the lines of the file."""
    lines = (" ".join(line.split()) for line in file.read_text().splitlines())
    for wanted in filter(None, (" ".join(line.split()) for line in block.splitlines())):
        if wanted not in lines:  # goes on behind the previous line's place
            return f"{file.name} has no line `{wanted}` at that place"
    return ""


def problems(document, source, winnow):
    for language, mark, block in FENCE.findall(document.read_text()):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = prepare(folder, source, winnow)
            if language == "sh" and mark == "run":
                yield "run", block, run(["bash", "-euo", "pipefail", "-c", block], folder, environment)
            elif language == "sh":
                for line in block.replace("\\\n", " ").splitlines():
                    yield "line", line, check_line(line, source, folder, environment)
            elif mark:
                yield "excerpt", block, check_excerpt(block, source / mark)


def main():
    source, winnow = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if not os.environ.get("WINNOW_TEST_MODEL"):
        print("WINNOW_TEST_MODEL is not set")
        return SKIPPED
    checked, failed = 0, 0
    for document in [source / "README.md", *sorted((source / "docs").glob("*.md"))]:
        for kind, what, problem in problems(document, source, winnow):
            checked += 1
            if problem:
                failed += 1
                print(f"{document.relative_to(source)}: {kind}:\n{what.strip()}\n    {problem}")
    print(f"{checked} checked, {failed} wrong")
    return 1 if failed or not checked else 0


sys.exit(main())
