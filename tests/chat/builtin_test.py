# SPDX-License-Identifier: Apache-2.0
"""Named templates write the same as libllama, and a file without a usable template gets the closest one.

RENDER=PROGRAM names the program that runs them (render.cc).
"""

import pytest

import by_winnow


@pytest.fixture(scope="module")
def winnow():
    renderer = by_winnow.Renderer()
    yield renderer
    assert renderer.close() == 0


def conversation(roles):
    names = {"s": "system", "u": "user", "a": "assistant"}
    return [{"role": names[role], "content": f"{names[role]} says {i}"} for i, role in enumerate(roles)]


# Built-in templates that may differ from libllama, and the reason.
DIFFERENCES = {"yandex": "libllama loses what the system says"}


def test_templates_by_name_write_what_libllama_writes(winnow):
    names = winnow.ask({"names": True})["names"]
    assert len(names) > 50
    differences = {}
    for name in names:
        for roles in ("u", "uau", "su", "suau", "suauau"):
            for opens_answer in (True, False):
                came = winnow.opened(name, conversation(roles), opens_answer, beside=True)
                if came.get("text") != came.get("libllama", "refused"):
                    differences.setdefault(name, []).append((roles, opens_answer, came))
    unexpected = {name: found[0] for name, found in differences.items() if name not in DIFFERENCES}
    assert not unexpected, (len(unexpected), unexpected)


@pytest.mark.parametrize(
    ("template", "tokens", "builtin", "reason"),
    [
        ("", [], "chatml", "there is no chat template"),
        ("", ["<|start_header_id|>"], "llama3", "there is no chat template"),
        ("", ["<start_of_turn>"], "gemma", "there is no chat template"),
        ("{% for m in messages %}", [], "chatml", "cannot be read"),
        ("{{ raise_exception('no') }}", ["[INST]"], "mistral-v3", "cannot be run"),
        ("{{ messages[0].nothing.at.all() }}", [], "chatml", "cannot be run"),
        ("always the same", [], "chatml", "file: the chat template leaves out the user's message"),
        ("frobnicate", [], "chatml", "file: the chat template leaves out the user's message"),
    ],
)
def test_the_nearest_one_takes_the_place_of_one_that_cannot_be_run(winnow, template, tokens, builtin, reason):
    came = winnow.opened(template, conversation("u"), tokens=tokens)
    assert came["text"] == winnow.opened(builtin, conversation("u"))["text"]
    assert reason in came["notice"] and came["notice"].endswith(f"with the built-in template {builtin}")


def test_a_template_that_runs_is_the_file_s_own(winnow):
    assert winnow.opened("{{ messages[0].content }}!", conversation("u")) == {"text": "user says 0!", "notice": ""}
    assert winnow.opened("chatml", conversation("u"))["notice"] == ""
