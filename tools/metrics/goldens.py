# SPDX-License-Identifier: Apache-2.0
"""Writes the scores of the cases by the packages that LongBench's scripts use: {metric: [[answer, reference, score],
...]}.

The last three metrics are copied from the scripts of LongEval and RULER; RULER's take all references of an answer.
"""

import json
import re
import string
from collections import Counter

import cases
import jieba
from fuzzywuzzy import fuzz
from rouge import Rouge

jieba.setLogLevel("ERROR")
CHINESE = "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞〟〰〾〿–—‘’‛“”„‟…‧﹏."


def f1(answer, reference):
    same = sum((Counter(answer) & Counter(reference)).values())
    if not same:
        return 0
    precision, recall = same / len(answer), same / len(reference)
    return 2 * precision * recall / (precision + recall)


def english(text):
    bare = "".join(c for c in text.lower() if c not in string.punctuation)
    return re.sub(r"\b(a|an|the)\b", " ", bare).split()


def chinese(text):
    words = ("".join(c for c in word.lower() if c not in string.punctuation + CHINESE) for word in jieba.cut(text))
    return [word for word in ("".join(word.split()) for word in words) if word]


def rouge_l(answer, reference):
    try:
        return Rouge().get_scores([answer], [reference], avg=True)["rouge-l"]["f"]
    except ValueError:
        return 0


def rouge_l_zh(answer, reference):
    return rouge_l(" ".join(jieba.cut(answer)), " ".join(jieba.cut(reference)))


def classification(answer, right):
    named = [name for name in cases.CLASSES if name in answer]
    for name in named:  # sic: removes elements while iterating
        if name in right and name != right:
            named.remove(name)
    return 1 / len(named) if right in named else 0


def share(right, answer):
    numbers = re.findall(r"\d+", answer)
    return numbers.count(right) / len(numbers) if numbers else 0


def code(answer, reference):
    lines = answer.lstrip("\n").split("\n")
    first = next((line for line in lines if "`" not in line and "#" not in line and "//" not in line), "")
    return fuzz.ratio(first, reference) / 100


def last_number(answer, reference):
    numbers = re.findall(r"\d+", answer)
    return int(bool(numbers) and int(numbers[-1]) == int(reference))


def matches(answer, references):
    return [1.0 if reference.lower() in answer.lower() else 0.0 for reference in references]


METRICS = {
    "qa_f1": (cases.QA, lambda a, r: f1(english(a), english(r))),
    "qa_f1_zh": (cases.QA_ZH, lambda a, r: f1(chinese(a), chinese(r))),
    "rouge_l": (cases.ROUGE, rouge_l),
    "rouge_l_zh": (cases.ROUGE_ZH, rouge_l_zh),
    "classification": (cases.CLASSIFICATION, classification),
    "retrieval": (cases.RETRIEVAL, lambda a, r: share(re.findall(r"Paragraph (\d+)", r)[0], a)),
    "retrieval_zh": (cases.RETRIEVAL_ZH, lambda a, r: share(re.findall(r"段落(\d+)", r)[0], a)),
    "count": (cases.COUNT, lambda a, r: share(r, a)),
    "code_similarity": (cases.CODE, code),
    "last_number": (cases.LAST_NUMBER, last_number),
    "contains": (cases.MATCHED, lambda a, rs: sum(matches(a, rs)) / len(rs)),
    "contains_any": (cases.MATCHED, lambda a, rs: max(matches(a, rs))),
}
lines = []
for name, (pairs, metric) in METRICS.items():
    scored = ",\n".join("  " + json.dumps([answer, reference, metric(answer, reference)], ensure_ascii=False) for answer, reference in pairs)
    lines.append(f'"{name}": [\n{scored}]')
print('{"classes": ' + json.dumps(cases.CLASSES) + ",\n" + ",\n".join(lines) + "}")
