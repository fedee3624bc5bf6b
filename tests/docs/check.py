"""Checks the fenced blocks of the documents, so that they cannot fall behind the program.

check.py SOURCE WINNOW      with the model in WINNOW_TEST_MODEL (skipped without it)

    ```sh run     bash runs the block in an empty folder with model.gguf, long.txt and prompts.jsonl
    ```sh run:P   the same, but only where the program P is installed
    ```sh         `winnow run` lines run with --dry-run, other `winnow` lines as they are; `make` lines must name a target
    ```… FILE     FILE has the block's lines, in this order, apart from white space

Other blocks are not looked at. Links to files of the repository, and to headings in them, must lead somewhere.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
FENCE = re.compile(r"^```(\w+)[ ]?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


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


def anchors(document):
    """The names that GitHub gives to the headings of a document."""
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def check_link(document, link):
    path, _, anchor = link.partition("#")
    target = document.parent / path if path else document
    if not target.exists():
        return "no such file"
    return f"no such heading in {target.name}" if anchor and anchor not in anchors(target) else ""


def links(document):
    """Those within the repository."""
    return [link for link in LINK.findall(CODE.sub("", document.read_text())) if "://" not in link]


def problems(document, source, winnow):
    for link in links(document):
        yield "link", link, check_link(document, link)
    for language, mark, block in FENCE.findall(document.read_text()):
        program = mark.partition(":")[2] if mark.startswith("run:") else ""
        if program and not shutil.which(program):
            continue
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            environment = prepare(folder, source, winnow)
            if language == "sh" and (mark == "run" or program):
                yield "run", block, run(["bash", "-euo", "pipefail", "-c", block], folder, environment)
            elif language == "sh":
                for line in block.replace("\\\n", " ").splitlines():
                    yield "line", line, check_line(line, source, folder, environment)
            elif mark:
                yield "excerpt", block, check_excerpt(block, source / mark)


def documents(source):
    return [*sorted(source.glob("*.md")), *sorted((source / "docs").rglob("*.md"))]


def main():
    source, winnow = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    if not os.environ.get("WINNOW_TEST_MODEL"):
        print("WINNOW_TEST_MODEL is not set")
        return SKIPPED
    checked, failed = 0, 0
    for document in documents(source):
        for kind, what, problem in problems(document, source, winnow):
            checked += 1
            if problem:
                failed += 1
                print(f"{document.relative_to(source)}: {kind}:\n{what.strip()}\n    {problem}")
    print(f"{checked} checked, {failed} wrong")
    return 1 if failed or not checked else 0


sys.exit(main())
