# SPDX-License-Identifier: Apache-2.0
"""Asks a running `winnow serve` about a text: python openai_client.py long.txt "Who is speaking?" [PORT]

The text is compressed before the question is seen, so that the server has it ready for the next question.
"""

import pathlib
import sys

from openai import OpenAI

text = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8")
question = sys.argv[2]

client = OpenAI(base_url="http://127.0.0.1:8080/v1", api_key="none")
if len(sys.argv) > 3:
    client.base_url = f"http://127.0.0.1:{sys.argv[3]}/v1"

stream = client.chat.completions.create(
    model="any",
    messages=[{"role": "user", "content": [{"type": "text", "text": text}, {"type": "text", "text": question}]}],
    max_tokens=60,
    stream=True,
    extra_body={"winnow": {"kv": "ada-snapkv", "budget": 512, "protocol": "question-agnostic"}},
)
for chunk in stream:
    for choice in chunk.choices:
        print(choice.delta.content or "", end="", flush=True)
print()
