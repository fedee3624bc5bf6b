# SPDX-License-Identifier: Apache-2.0
"""Runs chat templates and parses answers by winnow, through the program RENDER (render.cc)."""

import json
import os
import subprocess


def with_texts(messages):
    """The messages with calls' arguments as texts, which some templates need."""
    out = json.loads(json.dumps(messages))
    for message in out:
        for call in message.get("tool_calls", []):
            call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
    return out


class Renderer:
    def __init__(self):
        self.process = subprocess.Popen([os.environ["RENDER"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, source, messages, opens_answer=True, bos="<s>", eos="</s>", tools=None, thinks=True, **more):
        asked = {"template": source, "messages": with_texts(messages), "opens_answer": opens_answer, "bos": bos, "eos": eos}
        return self.ask({"separates": True, **asked, "tools": tools or [], "thinks": thinks, **more})

    def opened(self, template, messages, opens_answer=True, tokens=(), beside=False, **more):
        """The text by the template that winnow chooses for a file's template, beside libllama's own text."""
        asked = {"open": template, "messages": messages, "opens_answer": opens_answer, **more}
        return self.ask({**asked, "tokens": list(tokens), "beside": beside})

    def walk(self, grammar, *texts):
        """For each text, the number of bytes that a grammar accepts, and whether it can end there."""
        return self.ask({"walk": grammar, "texts": texts})

    def grammar_of(self, schema):
        return self.ask({"grammar_of": schema if isinstance(schema, str) else json.dumps(schema)})

    def ask(self, asked):
        self.process.stdin.write(json.dumps(asked) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        return self.process.wait()
