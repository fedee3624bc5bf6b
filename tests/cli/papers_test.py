# SPDX-License-Identifier: Apache-2.0
"""`winnow papers`: every recipe runs from a clean folder, wrong ones are refused, killed runs go on, reports say what is missing."""

import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest
from program import WINNOW, check_refusal

TASKS = (
    "2wikimqa dureader gov_report hotpotqa lcc lsht multi_news multifieldqa_en multifieldqa_zh musique narrativeqa passage_count passage_retrieval_en "
    "passage_retrieval_zh qasper qmsum repobench-p samsum trec triviaqa vcsum"
).split()


def run(*arguments, code=0):
    result = subprocess.run([WINNOW, "papers", *arguments], capture_output=True, text=True, timeout=600)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


RECIPES = [line.split()[0] for line in run().stdout.splitlines()]


def write_jsonl(path, lines):
    with open(path, "w") as file:
        for line in lines:
            print(json.dumps(line), file=file)


def sentence(question, label, texts):
    """A line of the sets of multiple choice."""
    choices = " ".join(f"{label}{i + 1}: {text}" for i, text in enumerate(texts))
    return {"instruction": f"Please choose the correct answer {question}\n\n{choices} Answer format: a/b", "answer": f"{label.lower()}1"}


def question(task, i, passage):
    """A line of LongBench, with two passages."""
    context = f"{passage.format(1)}fact {i} fact\n{passage.format(2)}" + f"fact {i} " * 7
    return {"_id": f"{task}-{i}", "context": context, "input": f"which {i}?", "answers": [f"fact {i}, Paragraph {i}"], "all_classes": ["x", "y"]}


@pytest.fixture(scope="module")
def data(work):
    """What every task needs, made up."""
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
    """A recipe of one task and three rows, as in a paper."""
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
    assert said.startswith(f"{name}: "), said
    if "\nmeasure " not in said:
        result = run("run", name, "-m", f"{work}/tiny.gguf", "-o", f"{work}/none", code=2)
        check_refusal(result, 2, f"{name} cannot be measured: ")
        return
    out = name.replace("/", "-")
    measure(work, data, out, name, "--limit", "1", "--length", "100", "--beyond-context")
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
        pytest.param({"figures": [{"model": "m", "values": [[1, 2], [3]]}]}, ["figures[0].values[1] has 1 figures, there are 2 columns"], id="short_row"),
        pytest.param({"figures": [{"model": "m", "values": [[1, 2]]}]}, ["figures[0].values has 1 rows, the recipe 2"], id="few_rows"),
        pytest.param({"figures": [{"model": "m", "values": [[1, 2], [3, "4"]]}]}, ["figures[0].values[1][1]", "type"], id="text_for_a_number"),
        pytest.param({"fgures": []}, ["fgures"], id="unknown_field"),
        pytest.param({"rows": [{"name": "x", "select": {"methods": "full"}}]}, ["rows[0].select", "methods"], id="unknown_field_below"),
        pytest.param({"title": 3}, ["title", "type"], id="number_for_a_text"),
        pytest.param({"plot": {"kind": "pie"}}, ["plot.kind", "enum"], id="unknown_choice"),
        pytest.param({"measures": []}, ["it has no measures, and missing does not say why"], id="nothing_to_measure"),
        pytest.param({"measures": [{"name": "a", "tasks": ["trec"], "methods": ["full"]}]}, ["measures[0].tasks[0]: there is no task trec"], id="unknown_task"),
        pytest.param({"measures": [{"name": "a", "tasks": ["niah"], "methods": ["snap"], "budgets": ["8"]}]}, ["measures[0].methods[0]: ", "snap"], id="unknown_method"),
        pytest.param({"measures": [{"name": "a", "tasks": ["niah"], "methods": ["snapkv"], "budgets": ["many"]}]}, ["measures[0].budgets[0]: ", "many"], id="unknown_budget"),
        pytest.param({"measures": [{"name": "a", "tasks": ["niah"], "methods": ["snapkv"]}]}, ["measures[0].methods[0]: snapkv needs a budget"], id="no_budget"),
        pytest.param({"rows": [{"name": "a"}, {"name": "b"}]}, ["rows[0] and columns[0]: 2 methods of the measure all are meant"], id="several_caches"),
        pytest.param({"columns": [{"name": "a", "select": {"tasks": ["niah"]}}, {"name": "b"}]}, ["rows[0] and columns[0]: niah is no task of the measure all"], id="task_of_no_measure"),
        pytest.param({"claims": [{"says": "s", "place": "p", "orders": [{"more": "Full", "less": "H2O"}]}]}, ["claims[0].orders[0].less: there is no H2O"], id="unknown_row"),
    ],
)
def test_a_wrong_recipe_is_refused(work, change, said):
    path = write(work, small(**change))
    check_refusal(run("show", path, code=1), 1, path, *said)


def test_what_is_no_recipe_is_refused(work):
    check_refusal(run("show", write(work, "{"), code=1), 1, "own.json", "byte 2")
    check_refusal(run("show", "ems/table-99", code=2), 2, "ems/table-99", "winnow papers")
    check_refusal(run("report", f"{work}/nothing", code=1), 1, "nothing")


def test_a_missing_file_is_named_and_the_rest_measured(work, model, data):
    path = write(work, small())
    os.rename(f"{data}/longbench/trec.jsonl", f"{data}/longbench/trec.away")
    try:
        assert "longbench/trec: the data folder has no longbench/trec.jsonl" in run("show", path, "--data", data).stdout
        measure(work, data, "less", path, "--limit", "1")
    finally:
        os.rename(f"{data}/longbench/trec.away", f"{data}/longbench/trec.jsonl")
    assert {r["task"] for r in records(work, "less")} == {"hotpotqa"}
    assert "longbench/trec is left out" in run("report", f"{work}/less").stdout


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
    assert "Measured in part: Full; SnapKV" in one and "Measured in part" not in both
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
    assert "Measured in part: Full; SnapKV\n" in run("report", f"{work}/half").stdout
    with open(f"{work}/half/records.jsonl", "w") as file:
        file.writelines(json.dumps(r) + "\n" for r in kept if r["spec"] == "full")
    said = run("report", f"{work}/half").stdout
    assert "Not measured yet: SnapKV\n" in said and "Measured in part: Full\n" in said, said


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


def given(work, data, scores):
    """A folder whose records have these scores: of full, and of SnapKV with both budgets."""
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
    """The paper: full over SnapKV by both budgets, and the claim the same by 24. Here full is better by 0.5 at 24 for every sample, and
    worse at 48 for half of them, better for the others."""
    full = [0.5, 1, 0.5, 1, 0.5, 1, 0.5, 1]
    said = given(work, data, {"full": full, "24": [s - 0.5 for s in full], "48": [s + (0.25 if i % 2 else -0.25) for i, s in enumerate(full)]})
    assert "| Full | 75.00 (" in said and "| SnapKV | 25.00 (" in said
    assert "Of 3 orders of the paper 2 agree, 0 disagree, 1 cannot be told, 0 were not measured." in said, said
    assert re.search(r"\| Full > SnapKV \| A model \| 1 \| 0 \| 1 \| 0 \|", said) and re.search(r"\| Full > SnapKV \| Full is better\. \| 1 \| 0 \| 0 \| 0 \|", said)


def test_an_order_that_does_not_hold(work, model, data):
    full = [0.25] * 8
    said = given(work, data, {"full": full, "24": [0.5] * 8, "48": [0.25] * 8})
    assert "Of 3 orders of the paper 0 agree, 2 disagree, 1 cannot be told, 0 were not measured." in said, said


def test_few_samples_tell_nothing(work, model, data):
    """Four of four are better: too few."""
    path = write(work, small())
    measure(work, data, "few", path, "--limit", "2")
    changed = records(work, "few")
    for r in changed:
        r["score"] = 1.0 if r["spec"] == "full" else 0.0
        r.pop("skipped", None)
    with open(f"{work}/few/records.jsonl", "w") as file:
        file.writelines(json.dumps(r) + "\n" for r in changed)
    assert "0 agree, 0 disagree, 3 cannot be told" in run("report", f"{work}/few").stdout
