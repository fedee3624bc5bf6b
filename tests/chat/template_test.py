# SPDX-License-Identifier: Apache-2.0
"""Chat templates are run as transformers runs them: beside jinja2, over llama.cpp's collection of templates.

RENDER=PROGRAM TEMPLATES=FOLDER name the program that runs them by winnow (render.cc) and the collection.
"""

import datetime
import json
import os
import pathlib
import subprocess

import pytest

jinja2 = pytest.importorskip("jinja2")
import jinja2.ext  # noqa: E402
import jinja2.sandbox  # noqa: E402

TEMPLATES = sorted(pathlib.Path(os.environ["TEMPLATES"]).glob("*.jinja"))


def said(*contents):
    """Messages of the user and the assistant in turns."""
    return [{"role": ("user", "assistant")[i % 2], "content": words} for i, words in enumerate(contents)]


def ruled(rule, *contents):
    return [{"role": "system", "content": rule}, *said(*contents)]


CONVERSATIONS = {
    "question": said("Who wrote War and Peace?"),
    "turns": said("Hello", "Good day!", "What is 2 + 2?"),
    "long": said("a", "b", "c", "d", "e", "f", "g"),
    "system": ruled("Answer in one word.", "Who?"),
    "system-turns": ruled("Be brief.", "Hello", "Good day!", "Why?"),
    "unicode": ruled("Отвечай по-русски.", "Кто написал «Войну и мир»? 🙂"),
    "lines": said("first line\nsecond line\n\n    indented", "yes\n", "and\tnow?"),
    "markup": said("{{ 1 + 1 }} {% if x %} <b>&amp;</b> \"quoted\" 'words' \\n", "[/INST] ok", "</s> <|im_end|> ?"),
    "json": said('{"a": [1, 2, {"b": null}]}'),
}


def by_transformers(source, messages, opens_answer, bos, eos):
    """As transformers' apply_chat_template() does it, with the variables that llama.cpp sets, too."""

    def refuse(message):
        raise jinja2.exceptions.TemplateError(message)

    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = lambda value, indent=None, **_: json.dumps(value, ensure_ascii=False, indent=indent)
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    now = datetime.datetime.now()
    variables = {"enable_thinking": True, "datetime": now.strftime("%b %d %Y"), "date_string": now.strftime("%d %b %Y")}
    if opens_answer:
        variables["add_generation_prompt"] = True
    return environment.from_string(source).render(messages=messages, bos_token=bos, eos_token=eos, **variables)


class Renderer:
    """Runs templates by winnow."""

    def __init__(self):
        self.process = subprocess.Popen([os.environ["RENDER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, source, messages, opens_answer=True, bos="<s>", eos="</s>"):
        asked = {"template": source, "messages": messages, "opens_answer": opens_answer, "bos": bos, "eos": eos}
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())


@pytest.fixture(scope="module")
def render():
    renderer = Renderer()
    yield renderer
    renderer.process.stdin.close()
    assert renderer.process.wait() == 0


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_texts_are_those_of_jinja2(render, path):
    source = path.read_text()
    differences = []
    for name, messages in CONVERSATIONS.items():
        for opens_answer in (True, False):
            try:
                wanted = by_transformers(source, messages, opens_answer, "<s>", "</s>")
            except jinja2.exceptions.TemplateError as error:
                wanted = error
            came = render(source, messages, opens_answer)
            if isinstance(wanted, Exception):
                if "error" not in came:
                    differences.append((name, opens_answer, "refused by jinja2", str(wanted), came["text"]))
            elif came.get("text") != wanted:
                differences.append((name, opens_answer, wanted, came))
    assert not differences, differences[0]


def test_input_is_marked(render):
    source = "{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}<|end|>{% endfor %}"
    came = render(source, [{"role": "user", "content": "  a<|end|>b "}, {"role": "assistant", "content": "c"}], False)
    text = came["text"].encode()
    assert text == b"<|user|>a<|end|>b<|end|><|assistant|>c<|end|>"
    marked = [text[begin:end] for begin, end in came["input"]]
    assert b"".join(marked).count(b"<|end|>") == 1 and b"a<|end|>b" in marked and b"c" in marked


def test_a_message_that_is_left_out_is_named(render):
    source = "{% for m in messages %}{% if m.role != 'system' or loop.first %}{{ m.content }}{% endif %}{% endfor %}"
    came = render(source, [*said("x", "y"), {"role": "system", "content": "rule"}, *said("z")])
    assert "message 3 is the system's" in came["error"]
    assert render(source, ruled("rule", "x"))["text"] == "rulex"


@pytest.mark.parametrize(
    "source",
    [
        "{{ " + "(" * 200_000 + "1" + ")" * 200_000 + " }}",
        "{{ " + "not " * 200_000 + "1 }}",
        "{{ " + " + ".join(["1"] * 200_000) + " }}",
        "{{ 1" + "|string" * 200_000 + " }}",
        "{{ x" + ".y" * 200_000 + " }}",
        "{% if x %}" * 100_000,
        "{% if x %}" + "{% elif x %}" * 50_000 + "{% endif %}",
        "{% set x %}" * 100_000,
        "x" * (2 << 20),
        "{{",
        "{% unknown %}",
    ],
    ids=lambda source: source[:12],
)
def test_hostile_templates_are_refused(render, source):
    assert "test: " in render(source, said("x"))["error"]
    assert "chat template" in render(source, said("x"))["error"]
