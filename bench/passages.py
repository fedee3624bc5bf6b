# SPDX-License-Identifier: Apache-2.0
"""Questions over several documents for `winnow_documents_distance`: LongBench's hotpotqa, 2wikimqa and musique prompts, split into their passages.

passages.py hotpotqa.jsonl ... > questions.jsonl

Each passage, with its "Passage N:" line, is a document. What stands before the first is the prefix, what stands after the last is the question. Metric and length of an
answer are LongBench's for all three.
"""

import json
import re
import sys

AFTER = "\n\nAnswer the question based on the given passages."

for path in sys.argv[1:]:
    with open(path) as prompts:
        for line in prompts:
            sample = json.loads(line)
            passages, after, question = sample["prompt"].rpartition(AFTER)
            prefix, *documents = re.split(r"^(?=Passage \d+:\n)", passages, flags=re.MULTILINE)
            print(json.dumps({"prefix": prefix, "documents": documents, "question": after + question, "answers": sample["answers"], "metric": "qa_f1", "max_tokens": 32}))
