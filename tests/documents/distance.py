# SPDX-License-Identifier: Apache-2.0
"""`winnow_documents_distance` scores by the metric and the length of answers that each line names.

distance.py WINNOW_MULTI_DISTANCE MAKE_TINY_GGUF
"""

import csv
import json
import subprocess
import sys
import tempfile

PROGRAM, TINY = sys.argv[1:3]
METHOD = "recompute:bos=each"


def run(work, line, code=0):
    """The row of one method, and the bytes that it answered."""
    with open(f"{work}/questions.jsonl", "w") as file:
        print(json.dumps({"prefix": "Read this.\n", "documents": ["one two three\n", "four five six\n"], "question": "And then?", **line}), file=file)
    command = [PROGRAM, f"{work}/tiny.gguf", f"{work}/questions.jsonl", "--steps", "2", "--threads", "1", "--method", METHOD]
    result = subprocess.run(command, capture_output=True, timeout=120)
    assert result.returncode == code, (line, result.returncode, result.stderr)
    if code:
        return None, result.stderr.decode(errors="replace")
    (row,) = csv.DictReader(result.stdout.decode().splitlines())
    said = result.stderr.split(b"\n  " + METHOD.encode(), 1)[1].lstrip()
    return row, said[6:].removesuffix(b"\n")


with tempfile.TemporaryDirectory() as work:
    subprocess.run([TINY, f"{work}/tiny.gguf"], check=True)
    answers = {n: run(work, {"answers": ["x"], "metric": "qa_f1", "max_tokens": n})[1] for n in (1, 4, 24)}
    assert len(answers[1]) < len(answers[4]) < len(answers[24]), answers
    assert answers[24].startswith(answers[4]) and answers[4].startswith(answers[1]), answers
#A letter of the answer is contained in it, and is none of its words.
    letter = next(chr(byte) for byte in answers[24] if chr(byte).isascii() and chr(byte).isalnum())
    assert float(run(work, {"answers": [letter], "metric": "contains_any", "max_tokens": 24})[0]["score"]) == 1
    assert float(run(work, {"answers": [letter], "metric": "qa_f1", "max_tokens": 24})[0]["score"]) < 1
    assert "metric" in run(work, {"answers": ["x"], "max_tokens": 24}, code=1)[1]
    assert "max_tokens" in run(work, {"answers": ["x"], "metric": "qa_f1"}, code=1)[1]
    assert "there is no metric f1" in run(work, {"answers": ["x"], "metric": "f1", "max_tokens": 24}, code=1)[1]
