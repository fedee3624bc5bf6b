# SPDX-License-Identifier: Apache-2.0
"""Means over the questions of `winnow_documents_distance`'s rows, one line a method, in the order of the first question.

means.py rows.csv ... > means.csv
"""

import csv
import sys

rows = [row for path in sys.argv[1:] for row in csv.DictReader(open(path))]
columns = [name for name in rows[0] if name not in ("file", "question", "method")]
print(",".join(["method", "questions", *columns]))
for method in dict.fromkeys(row["method"] for row in rows):
    of_method = [row for row in rows if row["method"] == method]
    means = [sum(float(row[name]) for row in of_method) / len(of_method) for name in columns]
    print(",".join([f'"{method}"', str(len(of_method)), *(f"{mean:.4f}" for mean in means)]))
