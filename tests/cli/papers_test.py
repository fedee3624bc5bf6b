# SPDX-License-Identifier: Apache-2.0
"""`winnow papers`: every recipe runs in an empty folder, invalid recipes are refused, killed runs continue, and reports
name what is missing."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
from program import PATIENCE, WINNOW, check_refusal, wait_for

TASKS = (
    "2wikimqa dureader gov_report hotpotqa lcc lsht multi_news multifieldqa_en multifieldqa_zh musique narrativeqa passage_count passage_retrieval_en "
    "passage_retrieval_zh qasper qmsum repobench-p samsum trec triviaqa vcsum"
).split()


def run(*arguments, code=0):
    result = subprocess.run([WINNOW, "papers", *arguments], capture_output=True, text=True, timeout=600)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


RECIPES = [line.split()[0] for line in run().stdout.splitlines()]
# Recipes whose cells need certain lengths, and a length that fills some of them.
OF_LENGTHS = {"ada-kv/figure-8": "1000", "ems/figure-6": "5400"}


def write_jsonl(path, lines):
    with open(path, "w") as file:
        for line in lines:
            print(json.dumps(line), file=file)


def sentence(question, label, texts):
    """A line of the multiple-choice data sets."""
    choices = " ".join(f"{label}{i + 1}: {text}" for i, text in enumerate(texts))
    return {"instruction": f"Please choose the correct answer {question}\n\n{choices} Answer format: a/b", "answer": f"{label.lower()}1"}


def question(task, i, passage):
    """A line of LongBench, with two passages."""
    context = f"{passage.format(1)}fact {i} fact\n{passage.format(2)}" + f"fact {i} " * 7
    return {"_id": f"{task}-{i}", "context": context, "input": f"which {i}?", "answers": [f"fact {i}, Paragraph {i}"], "all_classes": ["x", "y"]}


@pytest.fixture(scope="module")
def data(work):
    """Made-up data for every task."""
    folder = f"{work}/data"
    for name in ("longbench-config", "longbench", "longbench-mini", "needle", "text", "short"):
        os.makedirs(f"{folder}/{name}")
    with open(f"{folder}/longbench-config/dataset2prompt.json", "w") as file:
        json.dump({task: "Read:\n{context}\nNow answer: {input}\nAnswer:" for task in TASKS}, file)
    with open(f"{folder}/longbench-config/dataset2maxlen.json", "w") as file:
        json.dump({task: 3 for task in TASKS}, file)
    for task in TASKS:
        passage = "文章{}\n" if task == "dureader" else "Passage {}:\n"
        write_jsonl(f"{folder}/longbench/{task}.jsonl", [question(task, i, passage) for i in range(8)])
    for name in ("gov_report", "hotpotqa"):  # whole prompts
        write_jsonl(f"{folder}/longbench-mini/{name}.jsonl", [{"prompt": f"Some words of prompt {i}. " * 9} for i in range(8)])
    for name in ("needle", "text"):
        with open(f"{folder}/{name}/essay.txt", "w") as file:
            file.write("Some words of an essay. And more of them,\nin other lines.\n" * 200)
    write_jsonl(f"{folder}/short/wic.jsonl", [{"word": "w", "sentence1": f"A w {i}.", "sentence2": "No w.", "label": "true"} for i in range(4)])
    with open(f"{folder}/short/winogrande.json", "w") as file:
        json.dump([sentence("to the given sentence: The _ is big.", "Option", ["dog", "cat"])] * 2, file)
    for name in ("arc-easy", "openbookqa"):
        with open(f"{folder}/short/{name}.json", "w") as file:
            json.dump([sentence("to the question: What is it?", "Answer", ["one", "two"])] * 2, file)
    return folder


def measure(work, data, out, *recipes_and_options, code=0):
    return run("run", *recipes_and_options, "-m", f"{work}/tiny.gguf", "--data", data, "-o", f"{work}/{out}", "--raw", "--threads", "1", code=code)


def small(**changes):
    """A recipe with one task and three rows, as in a paper."""
    recipe = {
        "paper": "mine",
        "name": "table-1",
        "title": "A table",
        "place": "Table 1",
        "used": {"models": ["A model"], "data": "some", "settings": "none"},
        "measures": [{"name": "all", "tasks": ["longbench/trec", "longbench/hotpotqa"], "methods": ["full", "snapkv:window=4"], "budgets": ["24", "48"]}],
        "rows": [{"name": "Full", "select": {"method": "full"}}, {"name": "SnapKV", "select": {"method": "snapkv:window=4"}}],
        "columns": [{"name": "24", "select": {"budget": "24"}}, {"name": "48", "select": {"budget": "48"}}],
        "unit": 100,
        "figures": [{"model": "A model", "values": [[50.5, 50.5], [40, 45.25]]}],
        "claims": [{"says": "Full is better.", "place": "section 1", "orders": [{"more": "Full", "less": "SnapKV", "columns": ["24"]}]}],
    }
    recipe.update(changes)
    return recipe


def of_keys():
    """A recipe with one made-up task whose prompts have lengths."""
    select = {"name": "keys", "measures": [{"name": "keys", "tasks": ["kv-retrieval"], "methods": ["full", "snapkv:window=4"], "budgets": ["24"], "lengths": [4]}]}
    return {name: part for name, part in small(columns=[{"name": "found"}], **select).items() if name not in ("figures", "claims")}


def page_of(work, out):
    run("report", f"{work}/{out}", "-o", f"{work}/{out}.html")
    with open(f"{work}/{out}.html") as file:
        return file.read()


def write(work, recipe, name="own.json"):
    with open(f"{work}/{name}", "w") as file:
        file.write(recipe if isinstance(recipe, str) else json.dumps(recipe))
    return f"{work}/{name}"


def records(work, out):
    with open(f"{work}/{out}/records.jsonl") as file:
        return [json.loads(line) for line in file]


def keys(work, out):
    return sorted(json.dumps([r[k] for k in ("task", "id", "spec", "budget", "protocol", "score")]) for r in records(work, out))


def test_papers_are_listed():
    papers = {name.split("/")[0] for name in RECIPES}
    assert papers == {"ada-kv", "ahakv", "ems", "sage-kv", "samkv"} and len(RECIPES) == len(set(RECIPES))
    ems = [name for name in RECIPES if name.startswith("ems/table")]
    assert ems == [f"ems/table-{i}" for i in range(1, 10)], "by number"


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_from_a_clean_folder(work, model, data, name):
    said = run("show", name, "--data", data).stdout
    assert said.startswith(f"{name}: ") and "\nmeasure " in said, said
    out = name.replace("/", "-")
    options = [name, "--limit", "1", "--length", "100", "--beyond-context"]
    if name in OF_LENGTHS:
        refused = measure(work, data, out, *options, code=1)
        check_refusal(refused, 1, f"{name} cannot be measured at all: ", "no row and column use prompts of the length 100", "the recipe's is ")
        options[options.index("100")] = OF_LENGTHS[name]
    measure(work, data, out, *options)
    assert records(work, out)
    report = run("report", f"{work}/{out}").stdout
    assert report.startswith(f"## {name}: ") and "Measured with " in report
    run("report", f"{work}/{out}", "-o", f"{work}/{out}.html")
    with open(f"{work}/{out}.html") as file:
        page = file.read()
    assert page.startswith("<!doctype html>") and page.endswith("</body></html>\n") and f"{name}: " in page and "\x01" not in page


def test_a_folder_holds_several_recipes(work, model, data):
    measure(work, data, "both", "ems/table-5", "ems/table-8", "--limit", "1")
    first = records(work, "both")
    groups = {(r["task"], r["id"]): set() for r in first}
    for r in first:
        groups[r["task"], r["id"]].add((r["group"], r["group_size"]))
    assert all(len(group) == 1 for group in groups.values()), "a prompt is read once for both recipes"
    specs = {(r["spec"], r["budget"]) for r in first}
    assert len(first) == len(groups) * len(specs), "each method once, also those that both recipes have"
    report = run("report", f"{work}/both").stdout
    assert "## ems/table-5: " in report and "## ems/table-8: " in report
    again = measure(work, data, "both", "ems/table-4", "ems/table-5", "--limit", "1").stderr
    assert records(work, "both")[: len(first)] == first, again
    subprocess.run([WINNOW, "eval", "report", f"{work}/both"], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({"figures": [{"model": "m", "values": [[1, 2], [3]]}]}, ["figures[0].values[1] has 1 figures, but there are 2 columns"], id="short_row"),
        pytest.param({"figures": [{"model": "m", "values": [[1, 2]]}]}, ["figures[0].values has 1 rows, but the recipe has 2"], id="few_rows"),
        pytest.param({"figures": [{"model": "m", "values": [[1, 2], [3, "4"]]}]}, ["figures[0].values[1][1]: must be a number or null"], id="text_for_a_number"),
        pytest.param({"fgures": []}, ["own.json: there is no field fgures: did you mean figures?"], id="unknown_field"),
        pytest.param({"rows": [{"name": "x", "select": {"methods": "full"}}]}, ["rows[0].select: there is no field methods: did you mean method?"], id="unknown_field_below"),
        pytest.param({"title": 3}, ["title: must be a text"], id="number_for_a_text"),
        pytest.param({"unit": "100"}, ["unit: must be a number"], id="text_for_a_unit"),
        pytest.param({"unit": 0}, ["unit: must be more than 0"], id="unit_of_nothing"),
        pytest.param({"paper": "A B"}, ['paper: must be a text of the form "^[a-z0-9-]+$"'], id="spaces_in_a_name"),
        pytest.param({"used": {"models": [], "data": ""}}, ["used: the field settings is missing"], id="missing_field"),
        pytest.param({"rows": [{"name": "x", "select": {"labels": {"length": 5}}}]}, ["rows[0].select.labels.length: must be a text"], id="number_for_a_label"),
        pytest.param({"plot": {"kind": "pie"}}, ["plot.kind: there is no pie: ", "heat-map"], id="unknown_choice"),
        pytest.param({"measures": []}, ["it has no measures, and missing gives no reason"], id="nothing_to_measure"),
        pytest.param({"measures": [{"name": "a", "tasks": ["trec"], "methods": ["full"]}]}, ["measures[0].tasks[0]: there is no task trec"], id="unknown_task"),
        pytest.param({"measures": [{"name": "a", "tasks": ["niah"], "methods": ["snap"], "budgets": ["8"]}]}, ["measures[0].methods[0]: ", "snap"], id="unknown_method"),
        pytest.param({"measures": [{"name": "a", "tasks": ["niah"], "methods": ["snapkv"], "budgets": ["many"]}]}, ["measures[0].budgets[0]: ", "many"], id="unknown_budget"),
        pytest.param({"measures": [{"name": "a", "tasks": ["niah"], "methods": ["snapkv"]}]}, ["measures[0].methods[0]: snapkv needs a budget"], id="no_budget"),
        pytest.param({"rows": [{"name": "a"}, {"name": "b"}]}, ["rows[0] and columns[0]: 2 methods of the measure all fit"], id="several_caches"),
        pytest.param({"rows": [{"name": "a", "select": {"method": "full"}}, {"name": "b", "select": {"method": "h2o"}}]}, ["rows[1] and columns[0]: the row selects the method h2o, but the measure all has full, snapkv:window=4"], id="method_of_no_measure"),
        pytest.param({"columns": [{"name": "a", "select": {"budget": "24"}}, {"name": "b", "select": {"budget": "32"}}]}, ["rows[0] and columns[1]: the column selects the budget 32, but the measure all has 24, 48"], id="budget_of_no_measure"),
        pytest.param({"columns": [{"name": "a", "select": {"budget": "24", "protocol": "question-agnostic"}}, {"name": "b"}]}, ["rows[0] and columns[0]: the column selects the protocol question-agnostic, but the measure all has question-aware"], id="protocol_of_no_measure"),
        pytest.param({"columns": [{"name": "a", "select": {"tasks": ["niah"]}}, {"name": "b"}]}, ["rows[0] and columns[0]: niah is not a task of the measure all"], id="task_of_no_measure"),
        pytest.param({"claims": [{"says": "s", "place": "p", "orders": [{"more": "Full", "less": "H2O"}]}]}, ["claims[0].orders[0].less: there is no H2O"], id="unknown_row"),
    ],
)
def test_a_wrong_recipe_is_refused(work, change, said):
    path = write(work, small(**change))
    check_refusal(run("show", path, code=1), 1, path, *said)


def test_a_recipe_without_measures_is_shown_and_not_run(work, model):
    recipe = {name: part for name, part in small(missing=["Nothing measures it."]).items() if name not in ("measures", "rows", "columns", "figures", "claims")}
    path = write(work, recipe)
    assert "\nmeasure " not in run("show", path).stdout
    check_refusal(run("run", path, "-m", f"{work}/tiny.gguf", "-o", f"{work}/none", code=2), 2, "cannot be measured: Nothing measures it.")


def test_what_is_no_recipe_is_refused(work):
    check_refusal(run("show", write(work, "{"), code=1), 1, "own.json", "byte 2")
    check_refusal(run("show", "ems/table-99", code=2), 2, "ems/table-99", "winnow papers")
    check_refusal(run("report", f"{work}/nothing", code=1), 1, "nothing")


def test_a_missing_file_is_named_and_the_rest_measured(work, model, data):
    path = write(work, small())
    os.rename(f"{data}/longbench/trec.jsonl", f"{data}/longbench/trec.away")
    try:
        assert "longbench/trec cannot be measured: the data folder has no longbench/trec.jsonl" in run("show", path, "--data", data).stdout
        measure(work, data, "less", path, "--limit", "1")
    finally:
        os.rename(f"{data}/longbench/trec.away", f"{data}/longbench/trec.jsonl")
    assert {r["task"] for r in records(work, "less")} == {"hotpotqa"}
    assert "longbench/trec cannot be measured" in run("report", f"{work}/less").stdout


def test_no_folder_of_data(work, model):
    """The error names the user's folder, in one line for all 16 tasks."""
    arguments = ["run", "ems/table-9", "-m", f"{work}/tiny.gguf", "-o", f"{work}/no-data"]
    check_refusal(run(*arguments, code=1), 1, "ems/table-9 cannot be measured at all: 16 tasks cannot be measured: give --data DIR or set WINNOW_DATA")
    os.makedirs(f"{work}/empty")
    check_refusal(run(*arguments, "--data", f"{work}/empty", code=1), 1, "16 tasks cannot be measured: the data folder has no longbench/narrativeqa.jsonl or longbench-mini/")
    for command in (arguments, ["show", "ems/table-9"]):
        check_refusal(run(*command, "--data", f"{work}/nowhere", code=1), 1, f"{work}/nowhere: no such folder")
    assert not os.path.exists(f"{work}/no-data")


def test_an_interrupted_run_says_how_to_go_on(work, model):
    def stopped(out, length, seeds, is_time):
        measured = [{"name": "all", "tasks": ["kv-retrieval"], "methods": ["full"], "lengths": [length], "seeds": list(range(seeds))}]
        recipe = small(measures=measured, rows=[{"name": "Full"}], columns=[{"name": "found"}], figures=[], claims=[])
        command = [WINNOW, "papers", "run", write(work, recipe), "-m", f"{work}/tiny.gguf", "-o", f"{work}/{out}", "--raw", "--threads", "1", "--beyond-context"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        first = process.stderr.readline()
        assert f"{50 * seeds} samples, {50 * seeds} records to measure, 0 known" in first, first
        wait_for(is_time)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=PATIENCE)[1]
        assert process.returncode == 130, said
        return said

    path = f"{work}/stopped/records.jsonl"
    said = stopped("stopped", 40, 8, lambda: os.path.exists(path) and os.path.getsize(path) > 0)
    count = len(records(work, "stopped"))
    counted = "1 record" if count == 1 else f"{count} records"
    assert f"{work}/stopped has {counted}: winnow papers report {work}/stopped shows them, and the same command continues" in said, said
    said = stopped("unmeasured", 150, 1, lambda: True)
    assert "nothing was measured yet; run the same command again to continue" in said and not records(work, "unmeasured"), said


def test_a_killed_run_goes_on(work, model, data):
    path = write(work, small())
    measure(work, data, "whole", path)
    assert len(records(work, "whole")) == 2 * 8 * 3
    chance = random.Random(3)
    arguments = [WINNOW, "papers", "run", path, "-m", f"{work}/tiny.gguf", "--data", data, "-o", f"{work}/killed", "--raw", "--threads", "1"]
    for _ in range(10):
        process = subprocess.Popen(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.05, 0.3))
        process.send_signal(signal.SIGKILL)
        process.wait()
    measure(work, data, "killed", path)
    assert keys(work, "killed") == keys(work, "whole")
    missing = run("report", f"{work}/killed").stdout.partition("What is missing")[2]
    assert "in part" not in missing and "not measured yet" not in missing, missing


def test_shards_add_up_in_the_report(work, model, data):
    path = write(work, small())
    for i in range(2):
        measure(work, data, f"shard{i}", path, "--shard", f"{i}/2")
    one, both = (run("report", *folders).stdout for folders in ([f"{work}/shard0"], [f"{work}/shard0", f"{work}/shard1"]))
    assert "Partly measured: Full; SnapKV" in one and "Partly measured" not in both
    assert both == run("report", f"{work}/shard1", f"{work}/shard0").stdout


def test_the_report_of_half_a_run_says_what_is_missing(work, model, data):
    path = write(work, small())
    measure(work, data, "half", path)
    kept = [r for r in records(work, "half") if r["task"] == "trec" or r["spec"] == "full"]
    kept = [r for r in kept if r["spec"] != "full" or r["id"] != "hotpotqa-3"]
    for r in kept:
        r["group_size"] = sum(other["group"] == r["group"] for other in kept)
    with open(f"{work}/half/records.jsonl", "w") as file:
        file.writelines(json.dumps(r) + "\n" for r in kept)
    assert "Partly measured: Full; SnapKV\n" in run("report", f"{work}/half").stdout
    with open(f"{work}/half/records.jsonl", "w") as file:
        file.writelines(json.dumps(r) + "\n" for r in kept if r["spec"] == "full")
    said = run("report", f"{work}/half").stdout
    assert "Not measured yet: SnapKV\n" in said and "Partly measured: Full\n" in said, said


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
@pytest.mark.parametrize(
    ("kind", "task", "series"),
    [
        pytest.param("series", "attention/kept", "parts", id="means"),
        pytest.param("histogram", "longbench/passage_retrieval_en", "right_paragraphs", id="histogram"),
    ],
)
def test_series_are_drawn(work, model, data, kind, task, series):
    recipe = small(
        name=kind,
        measures=[{"name": "all", "tasks": [task], "methods": ["snapkv:window=4"], "budgets": ["24"], "lengths": [80]}],
        rows=[{"name": "SnapKV", "select": {"series": series}}],
        columns=[{"name": "mean"}],
        figures=[],
        claims=[],
        plot={"kind": kind, "x": "place", "y": "share"},
    )
    measure(work, data, kind, write(work, recipe), "--limit", "3")
    assert all(r["series"][series] for r in records(work, kind))
    run("report", f"{work}/{kind}", "-o", f"{work}/{kind}.html")
    with open(f"{work}/{kind}.html") as file:
        page = file.read()
    assert "tiny (winnow)</figcaption><svg" in page and ">SnapKV<" in page


def counted(said):
    """Numbers of orders: all, agree, disagree, cannot be told, too few samples, nothing evicted, not measured. Numbers
    of 0 are not in the text."""
    count, parts = re.search(r"Of the paper's (\d+) orders?, (\d.*?)\.(?: |$)", said, re.MULTILINE).groups()
    kinds = [r"agrees?", r"disagrees?", r"cannot be told", r"ha(?:s|ve) too few samples \(fewer than 6, or one for a task\)",
             r"(?:is|are) of caches from which nothing was evicted", r"(?:was|were) not measured"]  # fmt: skip
    found = [re.search(rf"(?:^|, )([1-9]\d*) {kind}(?:, |$)", parts) for kind in kinds]
    assert re.fullmatch(", ".join(rf"[1-9]\d* {kind}" for kind, one in zip(kinds, found) if one), parts), parts
    return [int(count), *(int(one[1]) if one else 0 for one in found)]


def words_of(svg):
    return [word.strip() for word in re.findall(r"<text>([^<]*)</text>", svg)]


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_a_plot_for_each_column_that_has_series_of_its_own(work, model, data):
    """Two budgets, each with a column of scores and one of another value; only the former get plots, since both would
    draw the same series."""
    recipe = small(
        name="columns",
        measures=[{"name": "all", "tasks": ["attention/loss"], "methods": ["snapkv:window=4"], "budgets": ["24", "48"], "lengths": [80]}],
        rows=[{"name": name, "select": {"series": name}} for name in ("loss", "bound")],
        columns=[{"name": f"{value} of {budget}", "select": {"budget": budget, "value": value}} for budget in ("24", "48") for value in ("loss", "bound")],
        figures=[],
        claims=[],
        plot={"kind": "series", "x": "layer", "y": "L1", "y_scale": "logarithmic"},
    )
    measure(work, data, "columns", write(work, recipe), "--limit", "1")
    page = page_of(work, "columns")
    assert re.findall(r"tiny \(winnow\)([^<]*)</figcaption><svg", page) == [", loss of 24", ", loss of 48"], page
    assert all({"loss", "bound", "layer"} <= set(words_of(svg)) for svg in re.findall(r"<svg.*?</svg>", page, re.S))


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_axes_end_where_the_data_do(work, model, data):
    """A curve of 61 points, drawn without marks; gnuplot's default axis would end at 70."""
    recipe = small(
        name="long",
        measures=[{"name": "all", "tasks": ["attention/kept"], "methods": ["snapkv:window=4"], "budgets": ["24"], "lengths": [80]}],
        rows=[{"name": "SnapKV", "select": {"series": "parts"}}],
        columns=[{"name": "mean"}],
        figures=[],
        claims=[],
        plot={"kind": "series", "x": "place", "y": "share"},
    )
    measure(work, data, "long", write(work, recipe), "--limit", "1")
    write_jsonl(f"{work}/long/records.jsonl", [{**r, "series": {"parts": [i / 61 for i in range(61)]}} for r in records(work, "long")])
    page = page_of(work, "long")
    assert "60" in words_of(page) and "70" not in words_of(page) and "<use " not in page, words_of(page)


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_heads_are_sorted_within_their_layers(work, model, data):
    """From left to right, the marks rise within each of two layers and fall between the layers."""
    measure(work, data, "heads", "ada-kv/figure-3", "--limit", "1", "--beyond-context")
    changed = records(work, "heads")
    for r in changed:
        r["series"] = {name: [0.5, 0.25, 0.75, 0.125] * 2 for name in r["series"]}
    write_jsonl(f"{work}/heads/records.jsonl", changed)
    with open(f"{work}/heads/recipes/ada-kv-figure-3.json") as file:
        sheet = json.load(file)
    assert sheet["layers"] == 2
    page = page_of(work, "heads")
    marks = [(float(x), -float(y)) for x, y in re.findall(r"<use xlink:href='#g0p3' transform='translate\(([\d.]+),([\d.]+)\)", page)][:8]
    assert len(marks) == 8 and marks == sorted(marks), marks
    heights = [y for _, y in marks]
    assert heights[:4] == heights[4:] == sorted(heights[:4]) and len(set(heights)) == 4, heights
    del sheet["layers"]  # as in an older run
    with open(f"{work}/heads/recipes/ada-kv-figure-3.json", "w") as file:
        json.dump(sheet, file)
    assert "<svg" not in page_of(work, "heads")


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_maps_name_units_and_budgets(work, model, data):
    measure(work, data, "maps", "ada-kv/figure-6", "--limit", "1", "--length", "100", "--beyond-context")
    page = page_of(work, "maps")
    assert "<figcaption>Full Cache</figcaption>" in page
    assert "<figcaption>SnapKV, budget 128</figcaption>" in page
    assert {"length, tokens", "depth, %"} <= set(words_of(page)), words_of(page)


def marks_in(page):
    """The number of points of curves and of marks in the key."""
    return len(re.findall(r"<use [^>]* color='var\(--s", page))


def row_of(text, name):
    """The figures in winnow's row, without their intervals."""
    return [float(cell.split()[0]) for cell in re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.M)[-1].split("|")]


@pytest.fixture(scope="module")
def long_prompts(work):
    """Three prompts that have enough blocks, and one that has too few."""
    os.makedirs(f"{work}/long/longbench-mini")
    chance = random.Random(5)
    lines = [{"prompt": "".join(chance.choice("abcdefgh") for _ in range(length))} for length in (850, 960, 1030, 300)]
    write_jsonl(f"{work}/long/longbench-mini/some.jsonl", lines)
    return f"{work}/long"


def test_blocks_of_samkv_s_figures(work, model, long_prompts):
    """Both figures use one measure. Each point of a series is the mean over the prompts that reach it."""
    said = measure(work, long_prompts, "blocks", "samkv/figure-7", "samkv/figure-8", "--beyond-context").stderr
    found = records(work, "blocks")
    assert len(found) == 4 and [bool(r.get("skipped")) for r in found] == [False, False, False, True], said
    told = [r for r in found if not r.get("skipped")]
    text = run("report", f"{work}/blocks").stdout
    seven, eight = text.split("## samkv/figure-8")
    for name, value in (("smallest exponent", "exponent_first"), ("largest exponent", "exponent_last"), ("largest, attention", "attention_last")):
        assert row_of(seven, name)[0] == pytest.approx(sum(r["values"][value] for r in told) / 3, abs=1e-5), name
    assert row_of(eight, "all layers")[0] == pytest.approx(100 * sum(r["score"] for r in told) / 3, abs=0.01)
    assert row_of(eight, "layers before them")[0] == pytest.approx(100 * sum(r["values"]["stable_early"] for r in told) / 3, abs=0.01)
    assert [len(r["series"]["exponents"]) for r in told] == [11, 13, 14] and all(len(r["series"]["stable"]) == 2 for r in told)
    for r in told:
        assert r["series"]["exponents"] == sorted(r["series"]["exponents"]) and max(r["series"]["first"]) <= 0, r
    assert "Partly measured" not in text


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")
def test_series_of_several_lengths_are_drawn_as_far_as_they_reach(work, model, long_prompts):
    recipe = small(
        name="ranks",
        measures=[{"name": "all", "tasks": ["attention/blocks"], "methods": ["full"]}],
        rows=[{"name": "Full", "select": {"series": "exponents"}}],
        columns=[{"name": "mean"}],
        figures=[],
        claims=[],
        plot={"kind": "series", "x": "rank", "y": "exponent"},
    )
    measure(work, long_prompts, "ranks", write(work, recipe), "--beyond-context")
    page = page_of(work, "ranks")
    # gnuplot draws a mark for each point, and one in the key.
    assert marks_in(page) == 14 + 1


def test_answers_that_name_paragraphs(work, model, data):
    """With records of given answers, the page has histograms with the right paragraphs, and 0 for a paragraph that no
    answer names."""
    measure(work, data, "named", "ahakv/figure-7", "--limit", "3", "--beyond-context")
    named = {"full": [[1], [2], [3]], "h2o": [[1], [1, 7], []]}
    changed = records(work, "named")
    for r in changed:
        i = int(r["id"].split("-")[-1])
        r.pop("skipped", None)
        numbers, right = named.get(r["spec"], [[5]] * 3)[i], i + 1
        r["series"] = {"paragraphs": numbers, "right_paragraphs": [right]}
        r["score"] = numbers.count(right) / max(1, len(numbers))
        r["values"] = {"earlier": sum(n < right for n in numbers) / max(1, len(numbers)), "later": sum(n > right for n in numbers) / max(1, len(numbers))}
    write_jsonl(f"{work}/named/records.jsonl", changed)
    text = run("report", f"{work}/named").stdout
    assert row_of(text, "Full Cache") == [100, 0, 0, 3], "and samples"
    assert row_of(text, "H2O") == [33.3, 16.7, 16.7, 3]
    assert row_of(text, "AhaKV") == [0, 0, 100, 3]
    if shutil.which("gnuplot"):
        page = page_of(work, "named")
        assert ">right<" in page and ">H2O<" in page
        # Seven curves with a point at each of 1, 2, 3, 5 and 7, and the key's marks.
        assert marks_in(page) == 7 * 5 + 7


def given(work, data, scores):
    """The report of records with these scores for the full cache and for SnapKV with both budgets."""
    path = write(work, small(measures=[{"name": "all", "tasks": ["longbench/trec"], "methods": ["full", "snapkv:window=4"], "budgets": ["24", "48"]}]))
    subprocess.run(["rm", "-rf", f"{work}/given"], check=True)
    measure(work, data, "given", path)
    changed = records(work, "given")
    for r in changed:
        r["score"] = scores[r["budget"] or "full"][int(r["id"].split("-")[1])]
        r.pop("skipped", None)
    with open(f"{work}/given/records.jsonl", "w") as file:
        file.writelines(json.dumps(r) + "\n" for r in changed)
    return run("report", f"{work}/given").stdout


def test_orders_of_a_case_by_hand(work, model, data):
    """The paper has Full above SnapKV at both budgets, and a claim of the same order at 24. In the records, Full is
    better by 0.5 at 24 for every sample; at 48 it is worse for half of the samples and better for the others."""
    full = [0.5, 1, 0.5, 1, 0.5, 1, 0.5, 1]
    said = given(work, data, {"full": full, "24": [s - 0.5 for s in full], "48": [s + (0.25 if i % 2 else -0.25) for i, s in enumerate(full)]})
    assert "| Full | 75.00 (" in said and "| SnapKV | 25.00 (" in said
    assert counted(said) == [3, 2, 0, 1, 0, 0, 0], said
    assert "\n| order | by | agrees | disagrees | cannot be told | too few samples | nothing evicted | not measured |\n" in said
    assert "| Full > SnapKV | A model | 1 | 0 | 1 | 0 | 0 | 0 |" in said and "| Full > SnapKV | claim 1 | 1 | 0 | 0 | 0 | 0 | 0 |" in said
    assert "\nThe paper's claim 1 (section 1): Full is better.\n" in said
    assert re.search(r"\| Full \| 75\.00 \(\d\d\.\d\d to \d\d\.\d\d\) \| 75\.00 \(\d\d\.\d\d to \d\d\.\d\d\) \| 8 \|\n", said), "intervals have the means' digits"


def test_orders_on_the_page(work, model, data):
    """The page states each claim once for all its orders, and counts orders that were not measured."""
    given(work, data, {"full": [1] * 8, "24": [0.5] * 8, "48": [0.5] * 8})
    page = page_of(work, "given")
    assert "A &gt; B means that the paper" in page and "A > B means that the paper's figure" in run("report", f"{work}/given").stdout
    pairs, every = page.split("<h3>Orders</h3>")[1].split("All orders")
    for table, rows in ((pairs, 2), (every, 3)):
        assert re.findall(r'<tr class="budget"><td[^>]*>([^<]*)</td>', table) == ["A model", "claim 1"]
        assert table.count("Full &gt; SnapKV") == rows and "<td class=\"text\" colspan=\"6\">1 not measured" not in table
    assert "<th>verdict</th>" in every and every.count(">agrees</td>") == 3, every
    write_jsonl(f"{work}/given/records.jsonl", [{**r, "group_size": 2} for r in records(work, "given") if r["budget"] != "48"])
    pairs, every = page_of(work, "given").split("<h3>Orders</h3>")[1].split("All orders")
    assert every.count("1 not measured") == 1 and pairs.count("1 not measured") == 0, every
    write_jsonl(f"{work}/given/records.jsonl", [{**r, "group_size": 1} for r in records(work, "given") if r["spec"] == "full"])
    page = page_of(work, "given").split("<h3>Orders</h3>")[1]
    assert "3 were not measured" in page and "<table>" not in page, page


def test_an_order_that_does_not_hold(work, model, data):
    full = [0.25] * 8
    said = given(work, data, {"full": full, "24": [0.5] * 8, "48": [0.25] * 8})
    assert counted(said) == [3, 0, 2, 1, 0, 0, 0], said


def test_where_nothing_is_evicted_the_full_cache_stands(work, model, data):
    """Prompts that fit into the budget of 48 are not measured with it: the cells say so, and these orders do not
    count."""
    full = [0.5, 1, 0.5, 1, 0.5, 1, 0.5, 1]
    given(work, data, {"full": full, "24": [s - 0.5 for s in full], "48": full})
    changed = records(work, "given")
    for r in changed:
        r["prompt_tokens"] = 40
        if r["budget"] == "48":
            r.update(skipped="the prompt has 40 tokens, which fit into the budget of 48", score=0)
    write_jsonl(f"{work}/given/records.jsonl", changed)
    said = run("report", f"{work}/given").stdout
    assert counted(said) == [3, 2, 0, 0, 0, 1, 0], said
    assert re.search(r"\| SnapKV \| 25\.00 \([^)]*\) \| 75\.00 \([^)]*\) = full \| 8 \|\n", said) and said.count("= full") == 1, said
    page = page_of(work, "given")
    assert page.count("= full") == 1 and page.count(">nothing evicted</td>") == 1
    changed = [{**r, "skipped": "", "score": 1} if r["budget"] == "48" and r["id"] == "trec-1" else r for r in changed]
    write_jsonl(f"{work}/given/records.jsonl", changed)
    assert counted(run("report", f"{work}/given").stdout) == [3, 2, 0, 1, 0, 0, 0], "one of them is measured"


def test_one_sample_has_no_interval(work, model, data):
    path = write(work, small())
    measure(work, data, "one", path, "--limit", "1")
    said = run("report", f"{work}/one").stdout
    assert re.search(r"\| Full \| \d+\.\d\d \| \d+\.\d\d \| 2 \|\n", said), "two tasks with one sample each"
    assert "- all: --limit 1 leaves 2 of 16 samples\n" in said and " to " not in said.partition("tiny, winnow")[2].partition("Of the paper's 3 orders")[0]
    measure(work, data, "needle", "ada-kv/figure-6", "--limit", "3", "--length", "100,120", "--beyond-context")
    assert "- needle: --limit 3 leaves 6 of 100 samples, 3 of 10 depths\n" in run("report", f"{work}/needle").stdout


def test_few_samples_tell_nothing(work, model, data):
    """Four better samples of four are too few."""
    path = write(work, small())
    measure(work, data, "few", path, "--limit", "2")
    changed = records(work, "few")
    for r in changed:
        r["score"] = 1.0 if r["spec"] == "full" else 0.0
        r.pop("skipped", None)
    with open(f"{work}/few/records.jsonl", "w") as file:
        file.writelines(json.dumps(r) + "\n" for r in changed)
    assert counted(run("report", f"{work}/few").stdout) == [3, 0, 0, 0, 3, 0, 0]
    page = page_of(work, "few")
    assert page.count(">too few samples (4 of 6)</td>") == 3 and "at least 6 samples, and two of each task" in page
    measure(work, data, "few", path)
    kept = [r for r in records(work, "few") if r["task"] == "trec" or r["id"] == "hotpotqa-0"]
    for r in kept:
        r["score"] = 1.0 if r["spec"] == "full" else 0.0
        r.pop("skipped", None)
    write_jsonl(f"{work}/few/records.jsonl", kept)
    assert counted(run("report", f"{work}/few").stdout) == [3, 0, 0, 0, 3, 0, 0], "nine samples, but only one of a task"
    assert page_of(work, "few").count(">too few samples (one for a task)</td>") == 3


def test_answers_may_be_shorter_than_the_recipe_s(work, model, data):
    said = measure(work, data, "answers", "ahakv/figure-8", "--length", "40", "--answer", "3", "--beyond-context").stderr
    assert "answers have 3 tokens, not 512 as in the recipe" in said
    assert {r["id"] for r in records(work, "answers")} == {"40+3x1"}
    assert "--answer" in measure(work, data, "no_answer", "ems/table-5", "--limit", "1", "--answer", "3").stderr, "it changes nothing there"


def test_runs_of_other_lengths_stay_in_the_report(work, model, data):
    path = write(work, of_keys(), "keys.json")
    measure(work, data, "lengths", path, "--length", "2", "--limit", "2", "--beyond-context")
    first = run("report", f"{work}/lengths").stdout
    assert "the length 2, not 4 as in the recipe" in first and first.count("## mine/keys") == 1
    measure(work, data, "lengths", path, "--length", "3", "--limit", "2", "--beyond-context")
    kept = [r for r in records(work, "lengths") if r["labels"]["length"] == "2"]
    write_jsonl(f"{work}/lengths/records.jsonl", kept)  # as if the run had been stopped at once
    both = run("report", f"{work}/lengths").stdout
    assert both.startswith(first) and "## mine/keys" in both[len(first) :], both
    assert "the length 3, not 4" in both[len(first) :] and "Not measured yet: Full; SnapKV" in both[len(first) :]
    page = page_of(work, "lengths")
    assert page.count('id="mine/keys"') == 1 and page.count('id="mine/keys.2"') == 1 and '<a href="#mine/keys.2">' in page
    measure(work, data, "lengths", path, "--length", "2", "--limit", "1", "--beyond-context")
    assert run("report", f"{work}/lengths").stdout.startswith(first), "fewer of the same samples change nothing"
    measure(work, data, "lengths", path, "--length", "2", "--limit", "3", "--beyond-context")
    assert re.search(r"\| Full \| [^|]+\| 3 \|\n", run("report", f"{work}/lengths").stdout), "more of the same samples take their place"
    assert sorted(os.listdir(f"{work}/lengths/recipes")) == ["mine-keys.2.json", "mine-keys.json"]


def test_length_and_max_prompt_reach_every_task_that_goes_by_them(work, model, data):
    said = measure(work, data, "cut", "ada-kv/figure-3", "--limit", "1", "--length", "90", "--max-prompt", "70").stderr
    assert "attention: prompts have the length 90, not the tasks' default" in said and "attention: longer prompts are cut to 70 tokens, as --max-prompt says" in said
    found = records(work, "cut")
    assert found and all(r["labels"]["length"] == "90" and r["max_prompt"] == 70 and 60 < r["prompt_tokens"] <= 70 for r in found), found
    assert "has no effect" not in said
    said = measure(work, data, "cut", "ems/table-5", "--limit", "1", "--length", "90", "--max-prompt", "70").stderr
    assert "ems/table-5: --length has no effect" in said and "longbench: longer prompts are cut to 70 tokens, not to 3500 as in the paper, as --max-prompt says" in said
    said = measure(work, data, "cut", "ada-kv/figure-6", "--limit", "1", "--length", "90", "--max-prompt", "70", "--memory", "1GiB", "--seed", "2", "--beyond-context").stderr
    assert [option for option in ("--length", "--max-prompt", "--memory", "--seed") if f"ada-kv/figure-6: {option} has no effect" in said] == ["--max-prompt", "--memory", "--seed"]
    assert all(r["prompt_tokens"] > 70 for r in records(work, "cut") if r["task"] == "niah"), "a cut could take what is hidden"


def test_prompts_beyond_the_context_are_announced(work, model, data):
    """The tiny model's context is 256."""
    shown = run("show", "ahakv/figure-8", "-m", f"{work}/tiny.gguf").stdout
    assert "speed: prompts of 32000 tokens with answers of 512 are read although they are longer than the model's context of 256" in shown
    shown = run("show", "ems/table-5", "-m", f"{work}/tiny.gguf").stdout
    assert "prompts are cut to fit into the model's context of 256, not to 3500 tokens as in the paper" in shown
    said = measure(work, data, "beyond", "ahakv/figure-8", "--length", "100").stderr
    sentence = "speed: prompts of 100 tokens with answers of 512 are read although they are longer than the model's context of 256"
    assert sentence in said and sentence in run("report", f"{work}/beyond").stdout
    said = measure(work, data, "beyond", "ems/table-5", "--limit", "1").stderr
    assert re.search(r"longer prompts are cut to 2\d\d tokens, not to 3500 as in the paper, because the model's context is 256", said), said


def test_only_what_cells_select_is_measured(work, model, data):
    assert "\ncolumns\n  position of kept entries, %: value position, file = gov_report\n" in run("show", "ems/figure-2").stdout
    measure(work, data, "selected", "ems/figure-2", "--limit", "2", "--length", "100", "--beyond-context")
    assert {r["labels"]["file"] for r in records(work, "selected")} == {"gov_report"}
    unused = small(measures=[*small()["measures"], {"name": "more", "tasks": ["kv-retrieval"], "methods": ["full"], "lengths": [2]}])
    said = measure(work, data, "unused", write(work, unused, "unused.json"), "--limit", "1").stderr
    assert "more: no row and column select any of its samples" in said and {r["task"] for r in records(work, "unused")} == {"trec", "hotpotqa"}
