# SPDX-License-Identifier: Apache-2.0
"""Conversations have the same tokens as in llama.cpp's server, unless their text looks like a control token.

TOKENIZE=PROGRAM names tokens.cc's, TEMPLATES=FOLDER llama.cpp's collection of templates, WINNOW_TEST_MODEL=GGUF a
vocabulary. VOCABULARIES=FOLDER may name more of them, such as `models` of llama.cpp's source.
"""

import json
import os
import pathlib
import subprocess

import pytest
from by_winnow import with_texts
from conversations import CONVERSATIONS

TEMPLATES = sorted(pathlib.Path(os.environ["TEMPLATES"]).glob("*.jinja"))
VOCABULARIES = [os.environ["WINNOW_TEST_MODEL"]] if "WINNOW_TEST_MODEL" in os.environ else []
if "VOCABULARIES" in os.environ:
    VOCABULARIES += sorted(map(str, pathlib.Path(os.environ["VOCABULARIES"]).glob("*.gguf")))

PLAIN_TOOLS = "# Tools\n\n"


@pytest.mark.skipif(not VOCABULARIES, reason="WINNOW_TEST_MODEL is not set")
@pytest.mark.parametrize("vocabulary", VOCABULARIES, ids=lambda path: pathlib.Path(path).stem)
def test_tokens_are_those_of_llama_cpp(vocabulary):
    asked = [
        (path.stem, name, {"template": path.read_text(), "messages": with_texts(messages), "tools": more.get("tools", []), "thinks": more.get("thinks", True)})
        for path in TEMPLATES
        for name, (messages, more) in CONVERSATIONS.items()
        if name != "markup"
    ]
    lines = "".join(json.dumps(one) + "\n" for *_, one in asked)
    ran = subprocess.run([os.environ["TOKENIZE"], vocabulary], input=lines, stdout=subprocess.PIPE, text=True, check=True)
    compared = 0
    for (template, conversation, _), line in zip(asked, ran.stdout.splitlines(), strict=True):
        winnow, llama = (json.loads(line)[whose] for whose in ("winnow", "llama"))
        if "error" in winnow:  # template_test.py checks refusals
            continue
        # llama.cpp drops tools that a template ignores, or refuses their results.
        if PLAIN_TOOLS in winnow["text"] and PLAIN_TOOLS not in llama.get("text", ""):
            continue
        assert winnow["tokens"] == llama["tokens"], (template, conversation)
        compared += 1
    assert compared > len(asked) / 2
