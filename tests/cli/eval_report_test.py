# SPDX-License-Identifier: Apache-2.0
"""`winnow eval report -o report.html`: figures recomputed here from made-up records, no outside resources, everything
escaped."""

import html.parser
import json
import os
import random
import re
import shutil
import subprocess

import pytest
from browser import CHROMIUM, Browser
from program import PATIENCE, WINNOW

EVIL = "</svg><script>alert('1')</script>&\"<b>"
METHODS = [("full", None, "f16"), ("snapkv", "64", "f16"), ("tova", "64", "f16"), ("snapkv", "256", "f16"), ("tova", "256", "f16"), ("tova", "256", "q8_0")]
VOID = {"meta", "br", "path", "rect", "use", "circle"}


class Page(html.parser.HTMLParser):
    """Parses tables into lists of rows; fails if elements do not nest."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tables, self.tags, self.ids, self.links = [], [], [], [], []
        self.feed(text)
        self.close()
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.ids += [value for name, value in attrs if name == "id"]
        self.links += [value for name, value in attrs if name in ("href", "src", "xlink:href")]
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag == "b":
            self.tables[-1][-1][-1] += "*"
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th", "b", "small") and self.tables:
            self.tables[-1][-1][-1] += data


def record(task, number, method, protocol, score, labels=None, values=None, tokens=3000):
    spec, budget, kv_type = method
    return {"task": task, "id": f"{task}-{number}", "spec": spec, "budget": budget, "kv_type": kv_type, "protocol": protocol, "model_hash": "00ab",
            "prompt_hash": "1", "answer": "a", "score": score, **({"values": values} if values else {}), **({"labels": labels} if labels else {}),
            "prompt_tokens": tokens, "entries": float(budget or tokens), "bytes_held": int(budget or tokens) << 10,
            "timings": {"prefill_ms": 1, "decode_ms": 1}, "group": f"{task}{number}{protocol}", "group_size": len(METHODS), "version": "0"}  # fmt: skip


def long_answer(method):
    kl = 0.0 if method[0] == "full" else 1 / int(method[1])
    return {"kl": kl, **{f"kl@{n}": kl * n for n in (64, 128, 200)}}


def made():
    chance = random.Random(3)
    out = []
    for method in METHODS:
        for i in range(8):
            labels = {"category": ("QA", "code")[i % 2]}
            out.append(record(f"task{i % 4}", i, method, "question-aware", round(chance.random(), 3), labels, tokens=(2000, 5000, 9000)[i % 3]))
        for length in ("1000", "4000"):
            for depth in ("0", "50", "100"):
                for kind in ("words", "digits"):
                    out.append(record("niah", length + depth + kind, method, "question-agnostic", chance.choice([0.0, 1.0]), {"length": length, "depth": depth, "kind": kind}))
        out.append(record("fidelity", 1, method, "question-agnostic", 1.0 if method[0] == "full" else 0.5, values={"kl": 0.0 if method[0] == "full" else 1 / int(method[1])}))
        out.append(record("fidelity-long", 1, method, "question-agnostic", 0.5, {"kind": "story"}, long_answer(method)))
        for length in ("1000", "2000"):
            speed = {"ttft_ms": 5.0 * int(length), "decode_tps": 1e4 / int(length), "peak_bytes": 3 << 20}
            out.append(record("efficiency", length, method, "question-agnostic", 0.5, {"length": length}, speed))
        out.append(record("perplexity/sliding", 1, method, "question-agnostic", 0.5, {"length": "4000"}, {"nll": 1.0, "perplexity": 2.7183, "nll@1000": 0.5, "nll@2000": 1.5}))
        out.append(record("ruler/cwe", 1, method, "question-agnostic", 0.5, {"length": "4000", "category": "RULER 4000"}))
        out.append(record(EVIL, 1, method, EVIL, 0.25, {"kind": EVIL}, {EVIL: 2.0}))
    skipped = record("fidelity", 2, METHODS[1], "question-agnostic", None)
    unreadable = {**record(EVIL, 2, METHODS[1], EVIL, 0.5), "budget": EVIL, "spec": EVIL}
    return out + [unreadable, {**skipped, "skipped": "too short", "group_size": 1}]


def write(folder, all_records):
    os.makedirs(folder)
    with open(f"{folder}/records.jsonl", "w") as file:
        for one in all_records:
            print(json.dumps(one), file=file)


def report(folder, out, **environment):
    result = subprocess.run([WINNOW, "eval", "report", folder, "-o", out], capture_output=True, text=True, timeout=PATIENCE, env={**os.environ, **environment})
    assert result.returncode == 0, result.stderr
    with open(out) as file:
        return file.read()


def mean(values):
    values = list(values)
    return sum(values) / len(values)


@pytest.fixture(scope="module")
def all_records(work):
    """Writes the made-up records to the folder `run`."""
    found = made()
    write(f"{work}/run", found)
    return found


@pytest.fixture(scope="module")
def text(work, all_records):
    return report(f"{work}/run", f"{work}/report.html")


@pytest.fixture(scope="module")
def page(text):
    return Page(text)


def test_nothing_comes_from_outside_or_is_not_escaped(text, page):
    assert "script" not in page.tags and "alert(" in text and "&lt;script&gt;" in text
    assert "http" not in text.replace("http://www.w3.org/", "") and "@import" not in text and "url(" not in text.replace("url(#", "")


def test_tables_have_the_means_of_the_records(page, all_records):
    tasks, categories, lengths = page.tables[2:5]  # after the tables of the benchmark's budgets
    assert tasks[0][2:] == [f"task{i} {what}" for i in range(4) for what in ("score", "of the full cache's score, %")]
    rows = [row for row in tasks[1:] if not row[0].startswith("budget")]
    assert [row[0] for row in rows] == ["full", "snapkv", "tova", "snapkv", "tova", "tova, q8_0"], "the full cache first, then by budget"
    assert [row[0] for row in tasks if row[0].startswith("budget")] == ["budget 64", "budget 256"]
    means = {}
    for row, method in zip(rows, METHODS):
        for i in range(4):
            of = [r["score"] for r in all_records if r["task"] == f"task{i}" and (r["spec"], r["budget"], r["kv_type"]) == method]
            means[method, i] = mean(of)
            assert abs(float(row[2 + 2 * i].lstrip("*").split()[0]) - 100 * mean(of)) < 0.051, (row, method)
    for row, method in zip(rows, METHODS):
        for i in range(4):
            best = max(means[m, i] for m in METHODS if m[1] == method[1])
            assert row[2 + 2 * i].startswith("*") == (method[0] != "full" and means[method, i] == best), (row, method, i)
    assert [name for name in sorted(categories[0][2:]) if name.endswith("score")] == ["LongBench mean of tasks score", "QA score", "code score"]
    column = categories[0].index("LongBench mean of tasks score")
    for row, method in zip([row for row in categories[1:] if not row[0].startswith("budget")], METHODS):
        assert abs(float(row[column].lstrip("*").split()[0]) - 100 * mean(means[method, i] for i in range(4))) < 0.051, (row, method)
    assert lengths[0][2::2] == [f"LongBench {part} score" for part in ("0-4k", "4-8k", "8k+")]
    agnostic = next(table for table in page.tables if any("KL to full" in name for name in table[0]))
    names = agnostic[0]
    assert "niah 4000 tokens, digits score" in names and "fidelity agreement, %" in names and "efficiency 2000 tokens first token, ms" in names and not [name for name in names if "nll" in name or "@" in name]
    small = next(row for row in agnostic if row[0] == "snapkv")
    assert small[names.index("fidelity KL to full, nats")] == f"*{1 / 64:.3f}"
    assert small[names.index("efficiency 2000 tokens bytes saved, %")].startswith("*50.0") and small[names.index("efficiency 2000 tokens peak, MiB")] == "*3.0"


def test_grids_have_methods_by_budgets(text, all_records):
    """Grids of methods by budgets: the full cache comes first, under each budget; then methods by their average lead
    over the budgets' means."""
    begin = text.index("<h4>niah 4000 tokens, digits: score</h4>")
    grid = Page(text[begin : text.index("</table>", begin)] + "</table></div>").tables[0]
    assert grid[0] == ["method", "64", "256"]
    score = {m: 100 * mean(r["score"] for r in all_records if r["task"] == "niah" and r["labels"]["length"] == "4000" and r["labels"]["kind"] == "digits"
                           and (r["spec"], r["budget"], r["kv_type"]) == m) for m in METHODS}  # fmt: skip
    best = {budget: max(score[m] for m in METHODS if m[1] == budget) for budget in ("64", "256")}
    shown = {m: f"{'*' if m[1] and score[m] == best[m[1]] else ''}{score[m]:.1f}" for m in METHODS}
    full, snapkv, tova, small = METHODS[0], (METHODS[1], METHODS[3]), (METHODS[2], METHODS[4]), METHODS[5]
    assert grid[1] == ["full", shown[full], shown[full]]
    ahead = {m: score[m] - mean(score[other] for other in METHODS if other[1] == m[1]) for m in METHODS}
    rows = [("snapkv", [shown[m] for m in snapkv], mean(ahead[m] for m in snapkv)), ("tova", [shown[m] for m in tova], mean(ahead[m] for m in tova)),
            ("tova, q8_0", ["", shown[small]], ahead[small])]  # fmt: skip
    assert grid[2:] == [[name, *figures] for name, figures, _ in sorted(rows, key=lambda row: -row[2])], (grid, rows)
    begin = text.index("<h4>fidelity: KL to full, nats</h4>")
    grid = Page(text[begin : text.index("</table>", begin)] + "</table></div>").tables[0]
    assert [row[1:] for row in grid if row[0] in ("full", "snapkv")] == [["0.000", "0.000"], ["*0.016", "*0.004"]], grid
    assert "<h4>task0" not in text, "of a benchmark its mean alone"


def test_no_mean_over_unlike_tasks(tmp_path):
    """A method that was skipped or not measured in one task has no mean over all tasks, because it would cover other
    tasks than its neighbours' means."""
    folder = f"{tmp_path}/unlike"
    rows = [record(f"task{i}", 0, method, "question-aware", 0.5, {"category": "QA"}) for i in range(2) for method in METHODS[:3]]
    rows[4] = {**rows[4], "skipped": "too short", "score": None}
    rows.append(record("task0", 0, METHODS[3], "question-aware", 0.5, {"category": "QA"}))
    write(folder, [{**row, "group_size": 4 if row["task"] == "task0" else 3} for row in rows])
    text = report(folder, folder + ".md")
    assert "| `snapkv` @ 64 | skipped |" in text and "| `tova` @ 64 | **50.0**; of the full cache's score, %: 100 |" in text, text
    assert text.count("\n1 record was skipped: too short\n") == 1, text
    name = f"`{METHODS[3][0]}` @ {METHODS[3][1]}"
    assert f"| {name} | **50.0**; of the full cache's score, %: 100 |  |" in text and f"| {name} |  |" in text, text


@pytest.mark.parametrize("form", ["md", "html"])
def test_a_report_says_why_records_were_skipped(tmp_path, form):
    """Reasons that differ only in their numbers share one line."""
    rows = [record("trec", i, method, "question-aware", 0.5) for i in range(4) for method in METHODS[:2]]
    for row, why in zip(rows[1::2], ("the prompt has 50 tokens, which fit into the budget of 64", "the prompt has 9 tokens, which fit into the budget of 64", "10% of 9 tokens are 1, <i> needs 4")):
        row.update(skipped=why, score=None)
    write(f"{tmp_path}/run", [{**row, "group_size": 2} for row in rows])
    text = report(f"{tmp_path}/run", f"{tmp_path}/run.{form}")
    assert text.count("2 records were skipped, for example: the prompt has 50 tokens, which fit into the budget of 64") == 1, text
    assert text.count("1 record was skipped: 10% of 9 tokens are 1, " + {"md": "<i>", "html": "&lt;i&gt;"}[form]) == 1, text


def test_intervals_and_what_is_held(tmp_path):
    """Intervals have as many digits as means; one sample has no interval. A mean of bytes over longer prompts only is
    left out, because it is not comparable."""
    folder = f"{tmp_path}/held"
    full, small = METHODS[0], METHODS[1]
    rows = []
    for i, tokens in enumerate((50, 2048, 4096)):
        rows.append(record("trec", i, full, "question-aware", 0.25 * i, tokens=tokens))
        rows.append(record("trec", i, small, "question-aware", 0.25 * i, tokens=tokens))
    rows[1].update(skipped="the prompt has 50 tokens, which fit into the budget of 64", score=None)
    rows += [record("lcc", 0, method, "question-aware", 0.125) for method in (full, small)]
    write(folder, [{**row, "group_size": 2} for row in rows])
    text = report(folder, folder + ".html")
    if shutil.which("gnuplot"):
        assert "<figcaption>lcc, score</figcaption>" in text and "<figcaption>trec, score</figcaption>" not in text, "nor do charts tell it"
    table = Page(text).tables[0]
    assert table[0][:2] == ["method", "MiB held"] and sorted(table[0][2::2]) == ["lcc score", "trec score"]
    found = {row[0]: row for row in table if row[0] in ("full", "snapkv")}
    assert found["full"][1] == f"{(50 + 2048 + 4096 + 3000) / 4 / 1024:.1f}" and found["snapkv"][1] == "", found
    trec, lcc = table[0].index("trec score"), table[0].index("lcc score")
    assert re.fullmatch(r"25\.0 \d+\.\d–\d+\.\d", found["full"][trec]) and found["full"][lcc] == "12.5", found


def values_of(text):
    """The values of each row of a .csv file, by task and method."""
    rows = [line.split(",") for line in text.splitlines()[1:]]
    return {(row[1], row[3].strip('"')): dict(pair.split("=") for pair in row[-1].split()) for row in rows}


def test_scores_in_units_of_the_full_cache_s(tmp_path):
    """The share covers the samples on which the full cache scores above 0. If it scores 1 on all, the share is the
    score, and is left out."""
    full, small = METHODS[0], METHODS[1]
    scores = {"needles": [(1, 1), (0, 1), (1, 0), (0.5, 0.25), (1, 1)], "easy": [(1, 0), (1, 1)], "hopeless": [(0, 0), (0, 1)]}
    rows = [record(task, i, method, "question-aware", score[method == small]) for task, of in scores.items() for i, score in enumerate(of) for method in (full, small)]
    write(f"{tmp_path}/run", [{**row, "group_size": 2} for row in rows])
    values = values_of(report(f"{tmp_path}/run", f"{tmp_path}/run.csv"))
    assert abs(float(values["needles", "snapkv"]["of_full"]) - (1 + 0 + 0.25 + 1) / 3.5) < 1e-5, values
    assert float(values["needles", "full"]["of_full"]) == 1
    assert not [value for (task, _), value in values.items() if task != "needles" and "of_full" in value], values


def test_a_reading_time_is_a_method_s_own(tmp_path):
    """If methods share a reading, only the sum is known, and no time is shown. A task that reports the time to the
    first token shows that instead."""
    full, small = METHODS[0], METHODS[1]
    rows = [{**record("t", i, method, "question-aware", 1), "timings": {"prefill_ms": 2 + i, "decode_ms": 1}, "group": f"{method}{i}", "group_size": 1} for i in range(2) for method in (full, small)]
    rows += [{**record("shared", 0, method, "question-aware", 1), "group_size": 2} for method in (full, small)]
    rows += [{**record("fast", 0, full, "question-aware", 1, values={"ttft_ms": 3}), "group_size": 1}]
    write(f"{tmp_path}/run", rows)
    values = values_of(report(f"{tmp_path}/run", f"{tmp_path}/run.csv"))
    assert {key: value for key, value in values.items() if "read_ms" in value} == {("t", "full"): {"read_ms": "2.5"}, ("t", "snapkv"): {"read_ms": "2.5"}}, values
    text = report(f"{tmp_path}/run", f"{tmp_path}/run.md")
    assert "| method | t | shared | fast | MiB held |" in text and "reading, ms" in report(f"{tmp_path}/run", f"{tmp_path}/run.html"), text


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_plots(page, text, all_records):
    svgs = re.findall(r"<svg.*?</svg>", text, re.DOTALL)
    assert page.tags.count("svg") == len(svgs) == text.count("<figure>")
    maps = len(METHODS) * 2  # for two kinds of needles
    assert text.count("depth, %") == text.count("length, tokens") == maps, text.count("depth, %")
    for title in ("LongBench mean of tasks, score", "RULER 4000, score", "perplexity/sliding 4000 tokens, perplexity", "first token, ms", "fidelity, KL to full, nats", "fidelity, agreement, %", "fidelity-long story, KL to full, nats", "niah 1000 tokens, words, score", "decoding, tokens/s"):
        assert f"<figcaption>{title}</figcaption>" in text, title
    assert len(page.ids) == len(set(page.ids)), "no two pictures have a name in common"
    assert all(link[1:] in page.ids for link in page.links), "links stay within the page"
    for svg in svgs:
        assert "black" not in svg and "rgb(1," not in svg and "rgb(  1," not in svg, "ink is the page's"
    map_of = text[text.index("<h4>niah words: snapkv</h4>") :]
    map_of = map_of[map_of.index("<figcaption>budget 256") :]
    drawn = [part.strip() for part in re.findall(r"<text>([^<]*)</text>", map_of[: map_of.index("</svg>")])]
    score = {(r["labels"]["length"], r["labels"]["depth"]): r["score"] for r in all_records if r["task"] == "niah" and r["labels"]["kind"] == "words"
             and (r["spec"], r["budget"], r["kv_type"]) == ("snapkv", "256", "f16")}  # fmt: skip
    assert drawn[-6:] == [f"{100 * score[length, depth]:.0f}" for length in ("1000", "4000") for depth in ("0", "50", "100")], drawn


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_long_answers_have_a_curve_by_position(text):
    """There is a curve for every method but the full cache, whose distance of 0 has no place on a logarithmic axis."""
    part = text[text.index("<h3>Long answers</h3>") :]
    part = part[: part.index("</figure>")]
    words = [word.strip() for word in re.findall(r"<text>([^<]*)</text>", part)]
    assert {"64", "128", "200"} <= set(words), words
    names = {f"{m[0]}{', q8_0' if m[2] != 'f16' else ''} @ {m[1]}" for m in METHODS if m[1]}
    assert names <= set(words) and "full" not in words, words


def test_values_that_some_records_lack_are_no_column_s(tmp_path):
    """Only one of a category's two tasks has a value: the value appears for that task, not for the category."""
    labels = {"category": "synthetic"}
    rows = [record("count", 1, method, "question-aware", 0.5, labels) for method in METHODS]
    rows += [record("retrieval", i, method, "question-aware", 0.5, labels, values={"earlier": 0.25 * i, **({"once": 1} if i else {})}) for method in METHODS for i in range(2)]
    write(f"{tmp_path}/run", rows)
    heads = {cell for table in Page(report(f"{tmp_path}/run", f"{tmp_path}/run.html")).tables for cell in table[0]}
    assert "retrieval earlier paragraphs named, %" in heads and not [head for head in heads if "once" in head], heads
    assert not [head for head in heads if head.startswith("synthetic earlier")], heads


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_kept_positions_have_a_curve_for_each_method(tmp_path):
    write(f"{tmp_path}/run", [{**record("attention/kept", 1, method, "question-aware", 0.5, values={"position": 0.5}), "series": {"parts": [0.75, 0.25]}} for method in METHODS])
    text = report(f"{tmp_path}/run", f"{tmp_path}/kept.html")
    part = text[text.index("<figcaption>attention/kept, kept entries</figcaption>") :]
    words = {word.strip() for word in re.findall(r"<text>([^<]*)</text>", part[: part.index("</figure>")])}
    assert {"full", "snapkv @ 64", "tova, q8_0 @ 256", "position in the prompt, %"} <= words, words
    tables = Page(text).tables
    assert any("attention/kept kept in the second half, %" in table[0] for table in tables), tables
    assert not [cell for table in tables for row in table for cell in row if cell.startswith("*")], "where a method keeps is neither good nor bad"


def test_series_go_through_merge_and_stay_out_of_tables(tmp_path):
    rows = [{**record("t", 1, method, "question-aware", 0.5, values={"shown": 1.25}), "series": {"hidden": [0, 0.5, 1e-9]}} for method in METHODS]
    write(f"{tmp_path}/run", rows)
    subprocess.run([WINNOW, "eval", "merge", f"{tmp_path}/run", "-o", f"{tmp_path}/all"], check=True, timeout=PATIENCE)
    with open(f"{tmp_path}/all/records.jsonl") as file:
        merged = [json.loads(line) for line in file]
    assert [one["series"] for one in merged] == [{"hidden": [0, 0.5, 1e-9]}] * len(METHODS)
    for name in ("report.html", "report.md", "report.csv"):
        text = report(f"{tmp_path}/run", f"{tmp_path}/{name}")
        assert "hidden" not in text and "shown" in text, name


def test_a_report_as_markdown(work, all_records):
    text = report(f"{work}/run", f"{work}/report.md")
    assert "\n| `full` | 0.000 | 0.000 |\n| `snapkv` | **0.016** | **0.004** |\n| `tova` |" in text
    assert report(f"{work}/run", f"{work}/report.md") == text, "winnow's own is replaced"


@pytest.mark.parametrize("extension", [".html", ".md", ".csv"])
def test_a_file_of_mine_is_not_replaced(work, all_records, tmp_path, extension):
    mine = tmp_path / f"mine{extension}"
    mine.write_text("a text of mine\n")
    refused = subprocess.run([WINNOW, "eval", "report", f"{work}/run", "-o", str(mine)], capture_output=True, text=True, timeout=PATIENCE)
    assert refused.returncode == 1 and "it exists and is not" in refused.stderr, refused.stderr
    assert mine.read_text() == "a text of mine\n"


def test_a_page_without_gnuplot_has_the_same_tables(work, page):
    bare = report(f"{work}/run", f"{work}/bare.html", PATH=f"{work}/nothing")
    assert "There are no plots, because gnuplot" in bare and Page(bare).tables == page.tables and "<svg" not in bare


needs_browser = pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed (Debian: chromium)")
PARTS = "[...document.querySelectorAll('table, .wide, figure, p')]"


@needs_browser
@pytest.mark.parametrize("width", [390, 700])
def test_no_table_is_wider_than_a_narrow_page_and_no_row_is_hidden(work, text, width):
    with Browser() as browser, browser.page(f"file://{work}/report.html") as shown:
        shown.resize(width)
        assert shown.js("document.documentElement.scrollWidth") <= width
        assert shown.js(f"{PARTS}.filter(e => e.getBoundingClientRect().right > {width}).map(e => e.outerHTML.slice(0, 80))") == []
        assert shown.js("[...document.querySelectorAll('.wide')].filter(e => e.scrollHeight > e.clientHeight + 2 || e.scrollWidth > e.clientWidth + 2).length") == 0
        heads = "[...document.querySelectorAll('td[data-column]')].filter(e => e.textContent).map(e => [e.dataset.column, getComputedStyle(e, '::before').content])"
        said = shown.js(heads)
        assert ["MiB held", '"MiB held"'] in said and all(content.strip('"') for _, content in said), "each figure says of which column it is"


@needs_browser
def test_rows_of_a_wide_page_are_not_behind_an_inner_scroll(work, text):
    with Browser() as browser, browser.page(f"file://{work}/report.html") as shown:
        shown.resize(1280, 300)
        assert shown.js("[...document.querySelectorAll('.wide')].filter(e => e.clientHeight + 20 < e.querySelector('table').offsetHeight).length") == 0


def test_auto_has_a_name_in_tables_and_its_spec_in_a_footnote(work):
    named = json.loads(subprocess.run([WINNOW, "methods", "auto", "--json"], capture_output=True, check=True).stdout)[0]["parts"]
    for protocol, label in (("question-aware", "auto"), ("question-agnostic", "auto (question-agnostic)")):
        spec = named[protocol]
        write(f"{work}/{protocol}", [record("lines", i, (method, budget, "f16"), protocol, i / 8) for i in range(8) for method, budget in (("full", None), (spec, "64"), (spec, "128"))])
        said = subprocess.run([WINNOW, "eval", "report", f"{work}/{protocol}"], capture_output=True, text=True, check=True).stdout
        assert f"| `{label}` @ 64 |" in said and said.count(spec) == 1 and said.rstrip().endswith(f"{label} is {spec}."), said
        page = report(f"{work}/{protocol}", f"{work}/{protocol}.html")
        assert page.count(spec) == 1 and f"<th>{label}</th>" in page, page
        csv = report(f"{work}/{protocol}", f"{work}/{protocol}.csv")
        assert spec in csv, "which a program reads"
