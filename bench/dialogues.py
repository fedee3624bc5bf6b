# SPDX-License-Identifier: Apache-2.0
"""A conversation for `winnow_stream_perplexity --chat`: the dialogues of LongBench's samsum prompts, one message a
line.

dialogues.py samsum.jsonl > talk.txt

Consecutive lines of one person are one message. A dialogue that occurs in several prompts is written once; summaries
are left out.
"""

import json
import re
import sys


def messages(dialogue):
    said, speaker = [], None
    for line in dialogue.split("\n"):
        found = re.match(r"([^:]{1,30}): (.*)", line.strip())
        if not found:
            continue
        name, words = found[1], found[2].strip()
        if name == speaker:
            said[-1] += " " + words
        else:
            said.append(words)
        speaker = name
    return [message for message in said if message]


written = set()
with open(sys.argv[1]) as prompts:
    for prompt in prompts:
        for part in json.loads(prompt)["prompt"].split("Dialogue: ")[1:]:
            dialogue = part.split("\nSummary:")[0].strip()
            if dialogue not in written:
                print("\n".join(messages(dialogue)))
            written.add(dialogue)
