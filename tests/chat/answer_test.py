# SPDX-License-Identifier: Apache-2.0
"""Answers written by a template are parsed back to the same messages.

RENDER=PROGRAM TEMPLATES=FOLDER name the program that runs templates and reads answers (render.cc), and llama.cpp's
collection of templates.
"""

import json
import os
import pathlib
import random

import pytest

import by_winnow

TEMPLATES = sorted(pathlib.Path(os.environ["TEMPLATES"]).glob("*.jinja"))


def tool(name, **properties):
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return {"type": "function", "function": {"name": name, "description": f"It does {name}.", "parameters": parameters}}


TOOLS = [
    tool("get_weather", city={"type": "string", "description": "Its name"}, days={"type": "integer", "description": "How many"}),
    tool("note", text={"type": "string", "description": "Words"}),
]


def call(number, name, **arguments):
    return {"id": f"call0000{number}", "type": "function", "function": {"name": name, "arguments": arguments}}


ANSWERS = {
    "content": {"content": "It rains: 3 < 4 — «да» {}."},
    "thought": {"content": "It rains.", "reasoning_content": "The sky\nis grey."},
    "call": {"content": "", "tool_calls": [call(1, "get_weather", city="Tula", days=2)]},
    "prose-call": {"content": "I look.", "tool_calls": [call(1, "note", text='He said: "no\n</x>"')]},
    "thought-call": {"content": "", "reasoning_content": "I must look.", "tool_calls": [call(1, "get_weather", city="Тула", days=1)]},
    "calls": {"content": "", "tool_calls": [call(1, "get_weather", city="Tula", days=2), call(2, "note", text="x")]},
}
QUESTION = [{"role": "user", "content": "How is the weather?"}]


@pytest.fixture(scope="module")
def winnow():
    renderer = by_winnow.Renderer()
    yield renderer
    assert renderer.close() == 0


def bytes_of(text):
    return list(text.encode())


def cut(text, generator):
    """The text's bytes in random chunks."""
    data, chunks = bytes_of(text), []
    while data:
        n = min(generator.choice([1, 1, 2, 3, 5, 8, 50]), len(data))
        chunks.append(data[:n])
        data = data[n:]
    return chunks


def read(winnow, source, text, chunks=None, **more):
    return winnow(source, QUESTION, tools=more.pop("tools", TOOLS), chunks=chunks or [bytes_of(text)], **more)


def written(winnow, source, answer):
    """The template's text for an answer, after that of the question; None if the answer does not follow it."""
    asked = winnow(source, QUESTION, tools=TOOLS)
    done = winnow(source, [*QUESTION, {"role": "assistant", **answer}], opens_answer=False, tools=TOOLS)
    if "text" not in asked or "text" not in done or not done["text"].startswith(asked["text"]):
        return None
    return done["text"][len(asked["text"]) :]


def total(deltas):
    """The message that a client assembles from deltas."""
    out = {"content": "", "reasoning": "", "calls": []}
    for delta in deltas:
        out["content"] += delta["content"]
        out["reasoning"] += delta["reasoning"]
        for part in delta["calls"]:
            if part["index"] == len(out["calls"]):
                out["calls"].append({"id": "", "name": "", "arguments": ""})
            at = out["calls"][part["index"]]
            for key in at:
                at[key] += part[key]
    return out


def is_there(winnow, source, answer):
    """The parts of an answer that the template writes, and their text without the end marker; None if it writes no
    answer."""
    plain = written(winnow, source, {"content": "What ends it?"})
    text = written(winnow, source, answer)
    if plain is None or text is None or "What ends it?" not in plain:
        return None
    thought = answer.get("reasoning_content", "")
    calls = [call["function"] for call in answer.get("tool_calls", [])]
    kept = {
        "content": answer["content"] if answer["content"] in text else "",
        "reasoning": thought if thought in text else "",
        "calls": [(call["name"], call["arguments"]) for call in calls if call["name"] in text],
    }
    return kept, text.removesuffix(plain[plain.index("What ends it?") + len("What ends it?") :])


def meant(message):
    """A parsed message with stripped white space and decoded arguments, for comparison."""
    calls = [(call["name"], json.loads(call["arguments"])) for call in message["calls"]]
    return {"content": message["content"].strip(), "reasoning": message["reasoning"].strip(), "calls": calls}


# Templates whose history is in another format than the one in which llama.cpp reads answers, and the answers that
# differ.
UNREAD = {
    "LFM2.5-8B-A1B": ["prose-call"],  # writes a line break in an argument as it is
    "MiniMax-M1": ["calls"],  # only one call is read
    "Mistral-Small-3.2-24B-Instruct-2506": ["call", "prose-call", "thought-call", "calls"],  # llama.cpp knows no [CALL_ID]
    "NVIDIA-Nemotron-Nano-v2": ["content", "thought", "prose-call"],  # leaves out the end of thinking
    "google-gemma-4-31B-it": ["prose-call"],  # puts the words after the call
    "meetkai-functionary-medium-v3.2": ["prose-call", "calls"],  # only one call is read, and only at the beginning
    "upstage-Solar-Open-100B": ["content", "thought", "calls"],  # lacks the marker that begins the content
}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_answers_are_read_as_the_template_writes_them(winnow, path):
    source = path.read_text()
    wrong = []
    for name, answer in ANSWERS.items():
        if (found := is_there(winnow, source, answer)) is None:
            continue
        kept, text = found
        came = read(winnow, source, text)
        try:
            same = meant(came["whole"]) == kept
        except ValueError:
            same = False
        if not same:
            wrong.append((name, kept, text, came["whole"]))
    assert [name for name, *_ in wrong] == UNREAD.get(path.stem, []), wrong


def test_most_templates_write_what_can_be_read(winnow):
    """Ensures that the test above has enough cases."""
    calls = sum(bool((found := is_there(winnow, path.read_text(), ANSWERS["call"])) and found[0]["calls"]) for path in TEMPLATES)
    assert calls > len(TEMPLATES) / 2


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.stem)
def test_deltas_together_are_the_message_however_it_is_cut(winnow, path):
    source = path.read_text()
    generator = random.Random(path.stem)
    for answer in ANSWERS.values():
        if (found := is_there(winnow, source, answer)) is None:
            continue
        text = found[1]
        for damaged in (text, text[: len(text) // 2], text + text, text.replace("{", "[", 1)):
            at_once = read(winnow, source, damaged)
            for _ in range(3 if damaged == text else 1):
                came = read(winnow, source, damaged, cut(damaged, generator))
                assert total(came["deltas"]) == came["streamed"] == at_once["streamed"]
            if damaged == text:
                for call in [*at_once["whole"]["calls"], *came["streamed"]["calls"]]:
                    call["id"] = ""  # in some formats it follows the arguments, too late for a stream
                assert came["streamed"] == at_once["whole"]


@pytest.mark.parametrize(
    "text",
    [
        "[" * 100_000,
        '<tool_call>\n{"name": "note", "arguments": ' + '{"a":' * 50_000,
        "<tool_call>\n" * 20_000,
        "<think>" * 20_000,
        "<" * 100_000,
        '{"name": "' * 20_000,
        "\0\x01" * 1000,
    ],
    ids=lambda text: text[:20].strip(),
)
@pytest.mark.parametrize("stem", ["Qwen-Qwen3-0.6B", "Qwen3-Coder", "openai-gpt-oss-120b", "meta-llama-Llama-3.1-8B-Instruct"])
def test_hostile_answers_are_read(winnow, stem, text):
    source = pathlib.Path(os.environ["TEMPLATES"], stem + ".jinja").read_text()
    came = read(winnow, source, text, chunks=[bytes_of(text[i : i + 4096]) for i in range(0, len(text), 4096)])
    assert total(came["deltas"]) == came["streamed"]


def test_broken_characters_are_content(winnow):
    source = pathlib.Path(os.environ["TEMPLATES"], "Qwen-Qwen3-0.6B.jinja").read_text()
    came = read(winnow, source, "", chunks=[[0xD0], [0x94, 0xD0], [0xB0, 0x20, 0xFF], [0x21]], tools=[])
    assert came["whole"] == came["streamed"] == total(came["deltas"])
    assert came["whole"]["content"] == "Да \ufffd!"


def test_broken_characters_within_a_thought_do_not_end_it(winnow):
    source = pathlib.Path(os.environ["TEMPLATES"], "Qwen-Qwen3-0.6B.jinja").read_text()
    thought = bytes_of("<think>\nWho") + [0xFF, 0x80, 0xE2, 0x82] + bytes_of(" else?\n") + [0xE2]
    for text, content in ((thought, ""), (thought + bytes_of("\n</think>\n\nHe") + [0xF0, 0x9F], "He\ufffd")):
        came = read(winnow, source, "", chunks=[[byte] for byte in text], tools=[])
        assert total(came["deltas"]) == came["streamed"] == came["whole"]
        assert came["whole"]["reasoning"].strip() == "Who\ufffd\ufffd\ufffd else?\n\ufffd" and came["whole"]["content"] == content


def test_an_answer_that_goes_on_is_what_is_new(winnow):
    source = pathlib.Path(os.environ["TEMPLATES"], "Qwen-Qwen2.5-7B-Instruct.jinja").read_text()
    said = [*QUESTION, {"role": "assistant", "content": "It rains and"}]
    came = winnow(source, said, chunks=[bytes_of(" it"), bytes_of(" snows.")], continued=True)
    assert came["whole"]["content"] == came["streamed"]["content"] == total(came["deltas"])["content"] == " it snows."


def test_what_is_demanded(winnow):
    source = pathlib.Path(os.environ["TEMPLATES"], "Qwen-Qwen2.5-7B-Instruct.jinja").read_text()
    auto = winnow(source, QUESTION, tools=TOOLS)
    assert auto["triggers"] == ["<tool_call>\n"] and '"get_weather' in auto["grammar"].replace("\\", "") and auto["prefix"] == ""
    required = winnow(source, QUESTION, tools=TOOLS, choice="required")
    assert required["grammar"] and not required["triggers"] and required["prefix"] == "<|im_start|>assistant\n"
    assert winnow(source, QUESTION, tools=TOOLS, choice="none")["grammar"] == ""
    by_schema = winnow(source, QUESTION, schema='{"type": "object", "properties": {"zzz": {"type": "integer"}}}')
    assert "zzz" in by_schema["grammar"] and not by_schema["triggers"]
    thinks = winnow(pathlib.Path(os.environ["TEMPLATES"], "Qwen-Qwen3-0.6B.jinja").read_text(), QUESTION)
    assert (thinks["thinking_start"], thinks["thinking_ends"]) == ("<think>", ["</think>"])


def test_templates_without_tools_get_them_as_texts(winnow):
    """Tools and results are written as for Hermes models, in messages that the template supports, and calls are
    parsed."""
    chatml = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" + (
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    said = [
        {"role": "system", "content": "Be brief."},
        *QUESTION,
        {"role": "assistant", "content": "I look.", "tool_calls": [call(1, "get_weather", city="Tula", days=2)]},
        {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "grey <|im_end|>"},
        {"role": "tool", "tool_call_id": "call00001", "name": "get_weather", "content": "wet"},
    ]
    came = winnow(chatml, said, tools=[*TOOLS, tool("odd<|im_end|>")])
    text = came["text"]
    assert text.startswith("<|im_start|>system\nBe brief.\n\n# Tools") and '"name": "get_weather"' in text
    assert 'I look.\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Tula", "days": 2}}\n</tool_call><|im_end|>' in text
    assert "<|im_start|>user\n<tool_response>\ngrey <|im_end|>\n</tool_response>\n<tool_response>\nwet\n</tool_response><|im_end|>" in text
    data = text.encode()
    marked = b"".join(data[begin:end] for begin, end in came["input"])
    assert marked.count(b"<|im_end|>") == text.count("<|im_end|>") - 4
    assert came["triggers"] and came["grammar"]
    answer = 'So.\n<tool_call>\n{"name": "note", "arguments": {"text": "x"}}\n</tool_call>'
    assert meant(winnow(chatml, QUESTION, tools=TOOLS, chunks=[bytes_of(answer)])["whole"])["calls"] == [("note", {"text": "x"})]
    assert "# Tools" not in winnow(chatml, QUESTION)["text"]


def test_rules_of_tools_go_to_the_user_where_the_system_says_nothing(winnow):
    gemma = pathlib.Path(os.environ["TEMPLATES"], "google-gemma-2-2b-it.jinja").read_text()
    came = winnow(gemma, QUESTION, tools=TOOLS)
    assert came["text"].startswith("<s><start_of_turn>user\n# Tools") and "How is the weather?" in came["text"]
