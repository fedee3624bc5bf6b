# SPDX-License-Identifier: Apache-2.0
"""For each template: tools are in the prompt, required calls are forced, and answers without calls follow their schema.

RENDER=PROGRAM TEMPLATES=FOLDER name the program that runs templates and walks grammars (render.cc), and llama.cpp's
collection of templates.
"""

import json
import os
import pathlib

import pytest

import by_winnow
from answer_test import ANSWERS, QUESTION, TOOLS, bytes_of, call, is_there, meant, tool

TEMPLATES = sorted(pathlib.Path(os.environ["TEMPLATES"]).glob("*.jinja"))
PLAIN = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
SCHEMA = {"type": "object", "properties": {"zzz": {"type": "integer"}}, "required": ["zzz"], "additionalProperties": False}
PROSE = "I look at the sky, and say that it is grey."


@pytest.fixture(scope="module")
def winnow():
    renderer = by_winnow.Renderer()
    yield renderer
    assert renderer.close() == 0


def source_of(stem):
    return pathlib.Path(os.environ["TEMPLATES"], stem + ".jinja").read_text()


def after_thinking(came):
    """The end of the prompt with which the grammar begins, plus a thought if the prompt ends within one."""
    start, ends, prefix = came["thinking_start"], came["thinking_ends"], came["prefix"]
    is_open = start and start in prefix and not any(end in prefix[prefix.rindex(start) :] for end in ends)
    return prefix + ("hm" + ends[0] if is_open else "")


# Thoughts that the format requires before a call although the template does not open them.
THOUGHT_FIRST = {"openbmb-MiniCPM5-1B": "<think>hm</think>"}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_a_call_that_is_required_comes_at_once(winnow, path):
    came = winnow(path.read_text(), QUESTION, tools=TOOLS, choice="required")
    assert came["triggers"] == []
    begun = after_thinking(came)
    if begun == came["prefix"]:
        begun += THOUGHT_FIRST.get(path.stem, "")
    ahead, prose, empty = winnow.walk(came["grammar"], begun, begun + PROSE, begun + "\n" * 400)
    assert ahead["read"] == len(begun.encode()) and not ahead["may_end"]
    assert prose["read"] == ahead["read"] and empty["read"] < ahead["read"] + 200


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_the_call_that_a_template_writes_is_allowed(winnow, path):
    """The grammar accepts the first call of the history up to its name, if the history is in the format of answers."""
    source = path.read_text()
    found = is_there(winnow, source, ANSWERS["call"])
    came = winnow(source, QUESTION, tools=TOOLS, choice="required")
    if found is None or not found[0]["calls"] or winnow(source, QUESTION, tools=TOOLS, chunks=[bytes_of(found[1])])["whole"]["calls"] == []:
        pytest.skip("its history is not in its format")
    begun = came["prefix"]
    texts = [begun + found[1], begun + found[1].lstrip(), after_thinking(came) + found[1].lstrip(), after_thinking(came) + "\n" + found[1]]
    name = ANSWERS["call"]["tool_calls"][0]["function"]["name"]
    wanted = [len((text[: text.index(name)] + name).encode()) for text in texts]
    assert any(one["read"] >= least for one, least in zip(winnow.walk(came["grammar"], *texts), wanted)), (came["grammar"], texts)


SAID = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Does note help, or get_weather?"},
    {"role": "assistant", "content": "", "tool_calls": [call(1, "get_weather", city="Tula", days=2)]},
    {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "grey"},
    {"role": "user", "content": "And now?"},
]


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_tools_are_told(winnow, path):
    """Checks descriptions, because the names also occur in the conversation."""
    for messages in (QUESTION, SAID[:2], SAID):
        came = winnow(path.read_text(), messages, tools=TOOLS)
        told = came.get("text", "")
        assert all(tool["function"]["description"] in told for tool in TOOLS) or "alternate" in came.get("error", "") or "leaves out" in came.get("error", ""), came


MUTE = PLAIN.replace("{{ m.content }}", "{{ m.content }}{% for c in m.tool_calls %}[CALL]{{ c.function | tojson }}[/CALL]{% endfor %}")
CALLED = 'So.\n<tool_call>\n{"name": "note", "arguments": {"text": "x"}}\n</tool_call>'


@pytest.mark.parametrize("stem", ["mute", "deepseek-ai-DeepSeek-V3.1", "deepseek-ai-DeepSeek-R1-Distill-Llama-8B", "fireworks-ai-llama-3-firefunction-v2"])
def test_templates_that_write_calls_and_tell_no_tools_have_both_as_texts(winnow, stem):
    source = MUTE if stem == "mute" else source_of(stem)
    for messages in (QUESTION, SAID):
        came = winnow(source, messages, tools=TOOLS)
        assert "# Tools\n\n" in came["text"] and "<tool_call>\n{" in came["text"]
        assert came["triggers"] == ["<tool_call>\n"] and "get_weather" in came["grammar"]
        is_thinking = came["thinking_start"] and came["text"].rstrip().endswith(came["thinking_start"])
        read = winnow(source, messages, tools=TOOLS, chunks=[bytes_of(("hm</think>" if is_thinking else "") + CALLED)])
        assert read["whole"]["content"].strip() == "So." and meant(read["whole"])["calls"] == [("note", {"text": "x"})]
    assert "# Tools" not in winnow(source, QUESTION)["text"]


def test_tools_that_a_template_refuses_are_told_as_texts(winnow):
    loop = "{% for t in tools %}{% if 'odd' in t.function.parameters.properties %}{{ raise_exception('odd') }}{% endif %}[TOOL]{{ t | tojson }}{% endfor %}"
    source = loop + MUTE
    usual = winnow(source, QUESTION, tools=TOOLS)
    assert "[TOOL]" in usual["text"] and usual["triggers"] == ["\\[CALL\\]"]
    odd = winnow(source, QUESTION, tools=[*TOOLS, tool("strange", odd={"type": "string"})])
    assert "# Tools\n\n" in odd["text"] and "It does strange." in odd["text"] and odd["triggers"] == ["<tool_call>\n"]
    without_one = "{% for t in tools %}{% if t.function.name != 'note' %}[TOOL]{{ t | tojson }}{% endif %}{% endfor %}" + MUTE
    assert "# Tools\n\n" in winnow(without_one, QUESTION, tools=TOOLS)["text"]
    refusing = "{% if messages | length > 1 %}{{ raise_exception('one only') }}{% endif %}" + source
    assert "one only" in winnow(refusing, SAID, tools=TOOLS)["error"]


def test_a_template_of_tools_is_for_requests_that_have_some(winnow):
    source = "[OF TOOLS]{% for t in tools %}{{ t | tojson }}{% endfor %}" + MUTE
    assert winnow(PLAIN, QUESTION, tool_use=source)["text"].startswith("<user>")
    came = winnow(PLAIN, QUESTION, tool_use=source, tools=TOOLS)
    assert came["text"].startswith("[OF TOOLS]{") and came["triggers"] == ["\\[CALL\\]"] and "# Tools" not in came["text"]
    hermes, plain = source_of("NousResearch-Hermes-3-Llama-3.1-8B-tool_use"), source_of("google-gemma-2-2b-it")
    assert winnow(plain, QUESTION, tool_use=hermes, tools=TOOLS)["text"] == winnow(hermes, QUESTION, tools=TOOLS)["text"]
    assert winnow(plain, QUESTION, tool_use=hermes)["text"] == winnow(plain, QUESTION)["text"]


def test_a_files_template_of_tools_that_cannot_be_read_is_named(winnow):
    broken = winnow.opened(PLAIN, QUESTION, tool_use="{% if %}", tools=TOOLS)
    assert "the chat template of tools cannot be read" in broken["notice"] and "# Tools" in broken["text"]
    alone = winnow.opened("", QUESTION, tool_use="[OF TOOLS]" + PLAIN)
    assert alone["notice"] == "" and alone["text"].startswith("[OF TOOLS]")
    named = winnow.opened("chatml", QUESTION, tool_use="[OF TOOLS]{% for t in tools %}{{ t | tojson }}{% endfor %}" + MUTE, tools=TOOLS)
    assert named["notice"] == "" and named["text"].startswith("[OF TOOLS]")


FORMED = '{"zzz": 5}'
# Text before and after an answer by a schema.
AROUND = {
    "MiniMax-M3": ("```json\n", "\n```"),
    "deepseek-ai-DeepSeek-V3.2": ("```json\n", "\n```"),
    "mistralai-Ministral-3-14B-Reasoning-2512": ("```json\n", "\n```"),
    "openai-gpt-oss-120b": ("<|channel|>final<|message|>", ""),
}
EITHER = ["plain", "Qwen-Qwen2.5-7B-Instruct", "Qwen-Qwen3-0.6B", "Qwen3-Coder", "meta-llama-Llama-3.1-8B-Instruct", "Kimi-K2-Instruct", "LFM2-8B-A1B", *AROUND]


@pytest.mark.parametrize("stem", EITHER)
def test_an_answer_with_tools_and_a_schema_is_a_call_or_of_the_schema(winnow, stem):
    source = PLAIN if stem == "plain" else source_of(stem)
    asked = {"tools": TOOLS, "schema": json.dumps(SCHEMA)}
    came, forced = winnow(source, QUESTION, **asked), winnow(source, QUESTION, tools=TOOLS, choice="required")
    assert came["triggers"] == [] and came["prefix"] == forced["prefix"]
    begun, (before, after) = after_thinking(came), AROUND.get(stem, ("", ""))
    formed, wrong, prose, ahead = winnow.walk(came["grammar"], begun + before + FORMED + after, begun + before + '{"zzz": "x"}', begun + PROSE, begun)
    assert formed["read"] == len((begun + before + FORMED + after).encode()) and formed["may_end"]
    assert wrong["read"] == len((begun + before).encode()) + len('{"zzz": ') and prose["read"] == ahead["read"] and not ahead["may_end"]
    for chunks in ([bytes_of(before + FORMED + after)], [[byte] for byte in bytes_of(before + FORMED + after)]):
        if begun == came["prefix"]:  # unless the prompt ends within a thought
            read = winnow(source, QUESTION, **asked, chunks=chunks)
            assert read["whole"] == read["streamed"] and read["whole"]["content"].strip() == FORMED and not read["whole"]["calls"]
    found = is_there(winnow, source, ANSWERS["call"])
    text = CALLED.removeprefix("So.\n") if stem == "plain" else found[1].lstrip() if found else ""
    if winnow(source, QUESTION, tools=TOOLS, chunks=[bytes_of(text)])["whole"]["calls"]:
        calls = winnow(source, QUESTION, **asked, chunks=[[byte] for byte in bytes_of(text)])["streamed"]["calls"]
        assert [one["name"] for one in calls] == ["note" if stem == "plain" else "get_weather"]


def test_a_schema_says_nothing_of_calls_that_are_required(winnow):
    for stem in ("Qwen-Qwen3-0.6B", "openai-gpt-oss-120b"):
        required = winnow(source_of(stem), QUESTION, tools=TOOLS, choice="required")
        assert winnow(source_of(stem), QUESTION, tools=TOOLS, choice="required", schema=json.dumps(SCHEMA)) == required
