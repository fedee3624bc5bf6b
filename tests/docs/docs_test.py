# SPDX-License-Identifier: Apache-2.0
"""Checks that the documents agree with the program. Each fenced block and each document's links are a case.

    ```sh run     bash runs the block in an empty folder with model.gguf, long.txt, prompts.jsonl and examples/
    ```sh run:P   the same, but only if the program P is installed; several are separated by commas
    ```sh         `winnow run` lines run with --dry-run, other `winnow` lines unchanged; `make` lines must name a target
    ```… FILE     FILE must have the block's lines in this order; white space may differ

Other blocks are not checked. Links to files of the repository and to headings in them must have a target. ctest sets
WINNOW to the program; its commands need a model in WINNOW_TEST_MODEL.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import pytest

SOURCE = pathlib.Path(__file__).resolve().parents[2]
WINNOW = pathlib.Path(os.environ["WINNOW"])
MODEL = os.environ.get("WINNOW_TEST_MODEL")
PATIENCE = 600  # seconds
DOCUMENTS = [*sorted(SOURCE.glob("*.md")), *sorted((SOURCE / "docs").rglob("*.md")), *sorted((SOURCE / "examples").rglob("*.md"))]
FENCE = re.compile(r"^```(\w+)[ ]?(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)


def blocks(wanted):
    """The mark and the text of blocks with the wanted language and mark, as cases named by document and line."""
    cases = []
    for document in DOCUMENTS:
        text = document.read_text()
        for found in FENCE.finditer(text):
            language, mark, block = found.groups()
            if wanted(language, mark):
                line = text.count("\n", 0, found.start()) + 1
                cases.append(pytest.param(mark, block, id=f"{document.relative_to(SOURCE)}:{line}"))
    return cases


def is_run(language, mark):
    return language == "sh" and mark.partition(":")[0] == "run"


@pytest.fixture
def run(tmp_path):
    """Runs a command in a folder that has the files named in documents; `winnow` is the program under test."""
    if not MODEL:
        pytest.skip("WINNOW_TEST_MODEL is not set")
    (tmp_path / "model.gguf").symlink_to(MODEL)
    (tmp_path / "examples").symlink_to(SOURCE / "examples")
    text = (SOURCE / "examples/demo/war-and-peace.txt").read_text()[:1500]
    (tmp_path / "long.txt").write_text(text)
    (tmp_path / "prompts.jsonl").write_text(json.dumps({"text": text, "question": "Who is speaking?"}) + "\n")
    environment = {**os.environ, "PATH": f"{WINNOW.parent}:{os.environ['PATH']}"}

    def in_folder(*command):
        result = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, errors="replace", timeout=PATIENCE)
        assert result.returncode == 0, result.stderr

    return in_folder


@pytest.mark.parametrize("mark, block", blocks(is_run))
def test_a_block_runs(run, mark, block):
    for program in filter(None, mark.partition(":")[2].split(",")):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed")
    run("bash", "-euo", "pipefail", "-c", block)


@pytest.mark.parametrize("mark, block", blocks(lambda language, mark: language == "sh" and not mark))
def test_lines_are_understood(run, mark, block):
    for line in block.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] == ["winnow", "run"]:
            run(*words, "--dry-run")
        elif words[:1] == ["winnow"]:
            run(*words)
        elif words[:1] == ["make"]:
            run(*words, "--dry-run", "-C", str(SOURCE))


@pytest.mark.parametrize("mark, block", blocks(lambda language, mark: mark and not is_run(language, mark)))
def test_an_excerpt_stands_in_its_file(mark, block):
    lines = (" ".join(line.split()) for line in (SOURCE / mark).read_text().splitlines())
    for wanted in filter(None, (" ".join(line.split()) for line in block.splitlines())):
        # Continues after the previous line's place.
        assert wanted in lines, f"{mark} has no line `{wanted}` at that place"


def anchors(document):
    """The anchors that GitHub generates for a document's headings."""
    headings = HEADING.findall(re.sub(r"^```.*?^```$", "", document.read_text(), flags=re.MULTILINE | re.DOTALL))
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: str(document.relative_to(SOURCE)))
def test_links_lead_somewhere(document):
    for link in LINK.findall(CODE.sub("", document.read_text())):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = document.parent / path if path else document
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link
