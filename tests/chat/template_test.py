# SPDX-License-Identifier: Apache-2.0
"""Chat templates give the same texts as with transformers' jinja2, over llama.cpp's collection of templates.

RENDER=PROGRAM TEMPLATES=FOLDER name the program that runs them by winnow (render.cc) and the collection.
"""

import datetime
import functools
import json
import os
import pathlib
import re

import pytest

jinja2 = pytest.importorskip("jinja2")
import jinja2.ext  # noqa: E402
import jinja2.nodes  # noqa: E402
import jinja2.sandbox  # noqa: E402

import by_winnow  # noqa: E402
from conversations import CONVERSATIONS, LOOSE, TOOLS, ruled, said, tool  # noqa: E402


class Generation(jinja2.ext.Extension):
    """`{% generation %}`, with which transformers marks the assistant's words. Renders its content in a separate
    scope."""

    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        return jinja2.nodes.Scope(parser.parse_statements(["name:endgeneration"], drop_needle=True), lineno=line)


TEMPLATES = sorted(pathlib.Path(os.environ["TEMPLATES"]).glob("*.jinja"))


# Templates for which llama.cpp's engine may differ from jinja2, and the reason.
DIFFERENCES = {
    "google-gemma-4-31B-it-interleaved": "knows results of tools in a form of its own only, into which llama.cpp puts them",
    "meetkai-functionary-medium-v3.1": "marks text as safe, after which jinja2 escapes what follows for HTML",
    "mistralai-Ministral-3-14B-Reasoning-2512": "takes thinking as a part of the content, into which llama.cpp puts it",
    "Kimi-K2-Instruct": "appends to a list, which transformers' sandbox forbids",
    "Kimi-K2-Thinking": "appends to a list, which transformers' sandbox forbids",
    "llama-cpp-deepseek-r1": "asks for the JSON of a generator, which jinja2 does not make",
    "google-gemma-2-2b-it": "refuses rules; llama.cpp puts them before the user's words",
    "fireworks-ai-llama-3-firefunction-v2": "asks for a variable that is not there; llama.cpp takes it for empty",
    "ibm-granite-granite-3.3-2B-Instruct": "tells tools, but writes no calls; both are put as texts",
    "StepFun3.5-Flash": "llama.cpp cuts white space around words, which leads this model into loops",
}


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


def refuse(message):
    raise jinja2.exceptions.TemplateError(message)


@functools.lru_cache(maxsize=1)
def compiled(source):
    environment = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[jinja2.ext.loopcontrols, Generation]
    )
    environment.filters["tojson"] = to_json
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    return environment.from_string(source)


def by_transformers(source, messages, opens_answer=True, bos="<s>", eos="</s>", tools=None, thinks=True):
    """The text by transformers' apply_chat_template(), with llama.cpp's variables added."""
    now = datetime.datetime.now()
    return compiled(source).render(
        messages=messages,
        tools=tools,
        documents=None,
        add_generation_prompt=opens_answer,
        bos_token=bos,
        eos_token=eos,
        enable_thinking=thinks,
        datetime=now.strftime("%b %d %Y"),
        date_string=now.strftime("%d %b %Y"),
    )


def allowed(source, messages, **more):
    """The texts by transformers with both forms of arguments, and the errors.

    If there are no tools, a template that fails when `tools` is None may run with `tools` undefined.
    """
    texts, errors = [], []
    for tools in [more["tools"]] if more.get("tools") else [None, jinja2.Undefined()]:
        for form in (messages, by_winnow.with_texts(messages)):
            try:
                texts.append(by_transformers(source, form, **{**more, "tools": tools}))
            except (jinja2.exceptions.TemplateError, TypeError, ValueError, AttributeError, RecursionError) as error:
                errors.append(str(error))
        if texts:
            break
    return texts, errors


@pytest.fixture(scope="module")
def render():
    renderer = by_winnow.Renderer()
    yield renderer
    assert renderer.close() == 0


def is_left_out(came, messages, texts):
    """Whether winnow refused a message that transformers would have dropped silently."""
    named = re.search(r"the model's chat template leaves out or changes message (\d+), which is the .*'s", came.get("error", ""))
    if not named:
        return False
    content = messages[int(named[1]) - 1]["content"]
    return all(content not in text for text in texts)


def has_plain_tools(came, texts):
    """Whether winnow wrote the tools because the template ignores them."""
    told = [tool["function"]["description"] for tool in (*TOOLS, LOOSE)]
    return "# Tools\n\n" in came.get("text", "") and not any(words in text for words in told for text in texts)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_texts_are_those_of_jinja2(render, path):
    source = path.read_text()
    differences = []
    for name, (messages, more) in CONVERSATIONS.items():
        for opens_answer in (True, False):
            texts, errors = allowed(source, messages, opens_answer=opens_answer, **more)
            came = render(source, messages, opens_answer, **more)
            same = came["text"] in texts if "text" in came else not texts
            if not same and not is_left_out(came, messages, texts) and not has_plain_tools(came, texts):
                differences.append((name, opens_answer, texts or errors, came))
    if path.stem in DIFFERENCES:
        assert differences, f"{path.stem} has no differences any more"
    else:
        assert not differences, differences[0]


@pytest.mark.parametrize(
    "body",
    [
        "{% if i == 2 %}b{% if i %}d{% continue %}{% endif %}e{% endif %}c",
        "{% if i == 2 %}b{% if not i %}d{% else %}f{% break %}{% endif %}e{% endif %}c",
        "{% if i == 2 %}b{% for j in [4, 5] %}{{ j }}{% if j == 4 %}g{% continue %}{% endif %}h{% endfor %}{% break %}{% endif %}c",
        "{% continue %}{% else %}none",
        "{% break %}{% else %}none",
    ],
)
def test_loops_keep_what_was_written_before_they_were_left(render, body):
    source = "{{ messages[0].content }}{% for i in [1, 2, 3] %}a{{ i }}" + body + "{% endfor %}"
    assert render(source, said("x"))["text"] == by_transformers(source, said("x"))


def test_an_answer_with_a_thought_keeps_its_content(render):
    """Some templates of gpt-oss write the thought of an earlier answer, or its content if it has no thought."""
    (path,) = (path for path in TEMPLATES if path.stem == "openai-gpt-oss-120b")
    put_content = '        {%- else %}\n            {#- CoT is dropped during all previous turns'
    put_thought = '        {%- elif "thinking" in message %}{{- "<|start|>assistant<|channel|>analysis<|message|>" + message.thinking + "<|end|>" }}\n'
    source = path.read_text().replace(put_content, put_thought + put_content)
    assert put_thought in source
    conversation = [*said("Hello"), {"role": "assistant", "content": "Good day!", "reasoning_content": "Be kind."}, *said("Why?")]
    assert render(source, conversation)["text"] == render(path.read_text(), conversation)["text"]


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
    assert "message 3, which is the system's" in came["error"]
    assert render(source, ruled("rule", "x"))["text"] == "rulex"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("{{ messages[0].content }}{% if tools is not none %}{{ tools | tojson }}{% endif %}", "x"),
        ("{{ messages[0].content }}{{ tools is defined }}", "xTrue"),
        ("{{ messages[0].content }}{% for tool in tools %}{{ tool.name }}{% endfor %}", "x"),
    ],
)
def test_no_tools_are_none_or_where_that_cannot_be_run_no_variable(render, source, text):
    assert render(source, said("x"))["text"] == text


@pytest.mark.parametrize(
    "told",
    [
        "{% if tools is not none %}<tools>{{ tools | tojson }}</>{% endif %}",
        "{% for tool in tools %}{{ tool | tojson }}{% endfor %}",
    ],
)
def test_a_template_that_writes_no_calls_gets_plain_tools(render, told):
    source = told + "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    asked, more = CONVERSATIONS["call-turns"]
    text = render(source, asked, **more)["text"]
    assert text.count('"name": "search"') == 1 and text.startswith("<system>Be brief.\n\n# Tools\n\n")
    assert '<assistant>I look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Tula", "days": 2}}\n</tool_call></>' in text
    for choice in ("auto", "required"):
        came = render(source, said("x"), choice=choice, **more)
        assert "get_weather" in came["grammar"] and came["triggers"] == (["<tool_call>\n"] if choice == "auto" else [])


def test_a_template_of_parts_gets_plain_tools(render):
    source = "{% for m in messages %}<{{ m.role }}>{% for p in m.content %}{{ p.text }}{% endfor %}</>{% endfor %}"
    asked, more = CONVERSATIONS["call-turns"]
    described, *turns = render(source, asked, **more)["text"].removesuffix("</>").split("</>")
    assert described.startswith("<system>Be brief.\n\n# Tools\n\n") and '"name": "search"' in described
    call = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Tula", "days": 2}}\n</tool_call>'
    assert turns == [
        "<user>How is the weather?",
        "<assistant>I look.\n" + call,
        "<user><tool_response>\ngrey\n</tool_response>",
        "<assistant>Grey.",
        "<user>And tomorrow?",
    ]
    assert render(source, ruled("rule", "x"))["text"] == "<system>rule</><user>x</>"


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


# Templates that would run without end, and the limit that stops them: steps, bytes or depth, or any of these.
ENDLESS = {
    "loops": ("steps", "{% for i in range(9999) %}{% for j in range(9999) %}{% set x = i %}{% endfor %}{% endfor %}"),
    "empty-loops": ("steps", "{% set l = range(9999) %}{% for i in l %}{% for j in l %}{% endfor %}{% endfor %}"),
    "range": ("bytes", "{{ range(9999999999) | length }}"),
    "range-to-the-last": ("bytes", "{{ range(0, 9223372036854775807, 9223) | length }}"),
    "macro": ("deep", "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}"),
    "macros": ("deep", "{% macro f(x) %}{{ g(x) }}{% endmacro %}{% macro g(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}"),
    "caller": ("deep", "{% macro f() %}{% call f() %}{{ caller() }}{% endcall %}{% endmacro %}{{ f() }}"),
    "tree": ("steps", "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}"),
    "repeated": ("bytes", "{{ 'abc' * 999999999999 }}"),
    "repeated-nothing": ("bytes", "{{ '' * 999999999999999 }}"),
    "doubled": ("bytes", "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x ~ n.x %}{% endfor %}"),
    "growing": ("more than", "{% set n = namespace(x='') %}{% for i in range(99999) %}{% set n.x = n.x + 'ab' %}{% endfor %}"),
    "replaced": ("bytes", "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x | replace('a', 'aaaa') %}{% endfor %}"),
    "replaced-nothing": ("bytes", "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = n.x.replace('', 'ab') %}{% endfor %}"),
    "indented": ("bytes", "{{ 'a\nb' | indent(99999999999) }}"),
    "indented-json": ("bytes", "{{ [[[1]]] | tojson(indent=2147483647) }}"),
    "formatted": ("bytes", "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = '{}{}'.format(n.x, n.x) %}{% endfor %}"),
    "joined": ("bytes", "{% set n = namespace(x='a') %}{% for i in range(99) %}{% set n.x = ['b', 'c', 'd'] | join(n.x) %}{% endfor %}"),
    "lists": ("bytes", "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = n.x + n.x %}{% endfor %}"),
    "written-lists": ("steps", "{% set n = namespace(x=[1]) %}{% for i in range(99) %}{% set n.x = [n.x, n.x] %}{% endfor %}{{ n.x }}"),
    "compared-lists": (
        "more than",
        "{% set n = namespace(x=(1, 1), y=(1, 1)) %}{% for i in range(40) %}{% set n.x = (n.x, n.x) %}{% set n.y = (n.y, n.y) %}{% endfor %}"
        "{{ n.x == n.y }}",
    ),
    "deep-list": ("deep", "{% set n = namespace(x=[1]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x }}"),
    "deep-json": ("deep", "{% set n = namespace(x=[1]) %}{% for i in range(9999) %}{% set n.x = [n.x] %}{% endfor %}{{ n.x | tojson }}"),
    "deep-key": ("deep", "{% set n = namespace(x=(1, 1)) %}{% for i in range(9999) %}{% set n.x = (n.x, 1) %}{% endfor %}{{ {n.x: 1} }}"),
    "list-in-itself": ("deep", "{% set x = [] %}{% set y = x.append(x) %}{{ x }}"),
    "object-in-itself": ("deep", "{% set n = namespace() %}{% set n.n = n %}{{ n | tojson }}"),
    "looked-for": ("steps", "{% set l = range(99999) | list %}{% for i in l %}{{ -1 in l }}{% endfor %}"),
    "sorted": ("steps", "{% set l = range(9999) | list %}{% for i in l %}{% set m = l | sort %}{% endfor %}"),
    "variables": ("more than", "".join(f"{{% set v{i} = {i} %}}" for i in range(3000)) + "{% for i in range(99999) %}{% endfor %}"),
}


@pytest.mark.parametrize("kind", ENDLESS)
def test_templates_that_never_end_are_refused(render, kind):
    bound, source = ENDLESS[kind]
    # llama.cpp also runs a template when it parses it. Without the guard the template is refused then, with it when it
    # is used.
    for guarded in (source, "{% if messages | length == 3 %}" + source + "{% endif %}{{ messages[0].content }}"):
        said_no = render(guarded, said("x", "y", "z"))["error"]
        assert said_no.startswith("test: the chat template") and bound in said_no


@pytest.mark.parametrize(
    "source",
    [
        "{{ 1 is divisibleby(0) }}",
        "{{ -9223372036854775807 is divisibleby(-1) }}",
        "{{ ['b', 3, 'a', 1.5, none, [1], 'b', 2, 'aa', 10, '9', 9, 1, '1', 0, 'c', 7, '7', 5, 'x'] | sort | length }}",
        "{{ 'a' | indent(-5) }}",
        "{% set x = [] %}{% set y = x.append(x) %}",
        "{% set n = namespace(x=[1]) %}{% for i in range(99999) %}{% set n.x = [n.x] %}{% endfor %}",
        "{{ 'abcabc'[5:1:-2] }}{{ 'abc'[::9223372036854775807] }}{{ 'abc'[9:-9:-9223372036854775807] }}",
    ],
)
def test_odd_templates_end(render, source):
    assert "text" in (came := render("{{ messages[0].content }}" + source, said("x"))) or "chat template" in came["error"]


def test_words_are_found_in_time_by_their_length(render):
    words = "a" * 400_000
    came = render("{{ messages[0].content.split('b')[0] | replace('a', 'aa') | replace('aa', 'a') }}", said(words + "b"))
    assert "message 1, which is the user's" in came["error"]
    assert render("{{ 'b' + 'a' in messages[0].content }}{{ messages[0].content }}", said(words))["text"] == "False" + words


@pytest.mark.parametrize(
    "source",
    [
        "{{ {'a': 1, 'b': [true, none, 'x']} }}",
        "{{ [] }}{{ {} }}{{ (1, 'b') }}",
        "{{ [1.0, -2.5, [none]] }}",
        """{{ ["a'b", 'a"b', "a'b\\"c", 'line\nline\ttab\\\\', '\x01\x7f', 'né'] }}""",
        "{{ messages }}{{ messages[0] }}",
        "{{ none }}{{ true }}{{ missing }}{{ {'a': none}.a }}",
        "{{ none ~ '' }}{{ none ~ none }}{{ missing ~ 'a' }}{{ 1 ~ 2 }}{{ 1.5 ~ true }}{{ ['a'] ~ {'b': none} }}",
        "{% for x in [[1, 2], {'a': 3}, none] %}{{ x }}{% endfor %}",
        "{% macro f(x) %}{{ x }}{% endmacro %}{{ f(none) }}{{ f([1]) }}{% set y = f({'a': 'b'}) %}{{ y }}",
        "{{ {'a': 'x'}.items() | list }}",
        "{{ ['a', 'b'] | map('upper') | list }}{{ [' a '] | map('trim') | join }}{{ ['ab'] | map('replace', 'a', 'c') | list }}",
        "{{ [1, none] | map('string') | list }}{{ [[2, 1]] | map('sort') | list }}{{ [{'a': 1}] | map(attribute='a') | list }}",
        "{% macro f(x) %}{{ x.y is defined }}{{ x['y'] }}{{ x.y == 'z' }}{{ x.y is iterable }}{% endmacro %}{{ f({'items': 1}.items) }}",
    ],
)
def test_values_are_printed_as_jinja2_prints_them(render, source):
    source += "{{ messages[0].content }}"
    texts, errors = allowed(source, said("x\n'y'"))
    assert render(source, said("x\n'y'")).get("text") in texts, (texts, errors)


# Items of lists in functions' parameters.
ITEMS = {
    "types": {"type": ["string", "number"]},
    "nullable": {"type": ["string", "null"]},
    "several": {"anyOf": [{"type": "string"}, {"type": "number"}]},
    "any": {},
    "objects": {"type": "object", "properties": {"a": {"type": ["integer", "null"], "description": "A"}}},
    "lists": {"type": "array", "items": {"type": ["string", "integer"]}},
}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_lists_may_have_items_of_any_type(render, path):
    source = path.read_text()
    for kind, items in ITEMS.items():
        more = {"tools": [tool("get_weather", "Tells it.", a={"type": "array", "items": items, "description": "A"})]}
        texts, errors = allowed(source, ruled("Be brief.", "How is it?"), **more)
        came = render(source, ruled("Be brief.", "How is it?"), **more)
        differs = "Tells it." in came["text"] and (not texts or path.stem in DIFFERENCES)
        assert came["text"] in texts or has_plain_tools(came, texts) or differs, (kind, texts or errors, came)


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_many_tools_and_long_conversations_are_within_the_bounds(render, path):
    """Renders 60 tools and 299 messages of 3.5 KB."""
    tools = [
        tool(f"function_{i}", "It does much. " * 20, **{f"p{j}": {"type": "string", "description": "d" * 50} for j in range(10)})
        for i in range(60)
    ]
    words = "word " * 700
    came = render(path.read_text(), said(*[f"{i} {words}" for i in range(299)]), tools=tools)
    assert "298 word" in came["text"]


@pytest.mark.parametrize(
    ("source", "input_parts"),
    [
        ("{{ m.split('|')[0] }}~{{ m.split('|')[-1] }}", ["<a>b", "c<d>"]),
        ("{{ m.split('|', 1)[1] }}~{{ m.rsplit('|', 1)[0] }}", ["c<d>", "<a>b"]),
        ("{{ ('<t>' ~ m) | replace('b|c', '<r>') }}", ["<a>", "<d>"]),
        ("{{ ('<t>' ~ m)[2:5] }}", ["<a"]),
        ("{{ m[0] }}~{{ m[::2] }}", ["<", "<>|<>"]),
        ("{{ ['<t>', m] | join('<j>') }}", ["<a>b|c<d>"]),
        ("{{ ('<t>' ~ m) | indent(2, true) }}", ["<a>b|c<d>"]),
        ("{{ '<t>{}<t>'.format(m) }}", ["<a>b|c<d>"]),
        ("{{ m | tojson }}~{{ [m] | string }}", ['"<a>b|c<d>"', "['<a>b|c<d>']"]),
        ("{{ m | upper | trim }}", ["<A>B|C<D>"]),
        ("{% set n = namespace(x='') %}{% set n.x = n.x + m %}{{ n.x }}", ["<a>b|c<d>"]),
    ],
)
def test_words_keep_their_origin(render, source, input_parts):
    """Exactly the parts that came from messages are marked as input. The source also writes `content`, since a message
    must not be left out."""
    source = "{% set m = messages[0].content %}" + source + "\n{{ m }}"
    came = render(source, said("<a>b|c<d>"))
    text = came["text"].encode()
    assert [text[begin:end].decode() for begin, end in came["input"]] == [*input_parts, "<a>b|c<d>"]


def test_what_tools_say_is_input_and_roles_are_not(render):
    calls = "{% for c in m.tool_calls %}<call>{{ c.function | tojson }}</call>{% endfor %}"
    source = "{% for t in tools %}{{ t | tojson }}{% for p in t.function.parameters.properties %}{{ p }}{% endfor %}{% endfor %}" + (
        "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}" + calls + "{{ eos_token }}{% endfor %}"
    )
    came = render(source, said("x"), tools=[tool("f", "<|end|>", **{"<|key|>": {"type": "string"}})])
    text = came["text"].encode()
    kept = b"".join(text[begin:end] for begin, end in came["input"])
    assert b"<|end|>" in kept and kept.endswith(b"<|key|>x")
    outside = text[came["input"][-2][1] : came["input"][-1][0]]
    assert outside == b"<s><|user|>"
