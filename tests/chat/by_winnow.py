# SPDX-License-Identifier: Apache-2.0
"""Runs chat templates by winnow, and reads answers: RENDER is the program that does (render.cc)."""

import json
import os
import subprocess


def with_texts(messages):
    """The same with arguments of calls as texts, which some templates ask for."""
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
        self.process.stdin.write(json.dumps({"separates": True, **asked, "tools": tools or [], "thinks": thinks, **more}) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        return self.process.wait()
