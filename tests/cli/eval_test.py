# SPDX-License-Identifier: Apache-2.0
"""`winnow eval`: records that survive kills, shards that add up, errors that name bad lines and folders."""

import csv
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

METHODS = ["--kv", "full,snapkv:window=4,streaming-llm", "--budget", "24,48", "--protocol", "question-aware,question-agnostic"]


def command(work, out, *more, tasks=("longbench/hotpotqa", "longbench/trec")):
    return [WINNOW, "eval", *tasks, "-m", f"{work}/tiny.gguf", "--data", f"{work}/data", "-o", f"{work}/{out}",
            "--raw", "--threads", "1", *METHODS, *more]  # fmt: skip


def run(arguments, code=0):
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=300)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


def write_data(work, lines=6):
    for folder in ("longbench-config", "longbench"):
        os.makedirs(f"{work}/data/{folder}")
    prompts = {"hotpotqa": "Read:\n{context}\nNow answer: {input}\nAnswer:", "trec": "Types:\n{context}\n{input}"}
    with open(f"{work}/data/longbench-config/dataset2prompt.json", "w") as file:
        json.dump(prompts, file)
    with open(f"{work}/data/longbench-config/dataset2maxlen.json", "w") as file:
        json.dump({"hotpotqa": 6, "trec": 4}, file)
    with open(f"{work}/data/longbench/hotpotqa.jsonl", "w") as file:
        for i in range(lines):
            print(json.dumps({"_id": f"h{i}", "context": f"fact {i} " * 12, "input": f"which {i}?", "answers": [f"fact {i}"], "length": 5000 * i}), file=file)
    with open(f"{work}/data/longbench/trec.jsonl", "w") as file:
        for i in range(lines):  # whole prompts, as in the extract
            prompt = "Types:\n" + "Question: one\nType: x\n" * 5 + f"Question: two {i}\nType:"
            print(json.dumps({"id": i, "prompt": prompt, "answers": ["x"], "all_classes": ["x", "y"]}), file=file)


def records(work, *outs):
    """A run's records by their keys, without fields that differ between any two runs."""
    found = {}
    for out in outs:
        with open(f"{work}/{out}/records.jsonl") as file:
            for line in file:
                record = json.loads(line)
                record.pop("timings")
                key = tuple(record[k] for k in ("task", "id", "spec", "budget", "kv_type", "protocol")) + tuple(filter(None, [record.get("max_prompt")]))
                assert key not in found, f"{key} occurs twice"
                found[key] = record
    return found


@pytest.fixture(scope="module")
def data(work, model):
    write_data(work)
    return f"{work}/data"


@pytest.fixture(scope="module")
def expected(work, data):
    """The records of an undisturbed run in the folder `whole`."""
    run(command(work, "whole"))
    return records(work, "whole")


@pytest.fixture(scope="module")
def merged(work, expected):
    """One folder for each number of shards; each has the shards' joined records."""
    out = {}
    for count in (2, 4):
        shards = [f"shard{i}of{count}" for i in range(count)]
        for i, shard in enumerate(shards):
            run(command(work, shard, "--shard", f"{i}/{count}"))
        assert records(work, *shards) == expected
        run([WINNOW, "eval", "merge", *(f"{work}/{shard}" for shard in shards), "-o", f"{work}/merged{count}"])
        out[count] = f"{work}/merged{count}"
    return out


def test_records_say_what_was_kept(expected):
    all_records = expected
    assert len(all_records) == 2 * 6 * 2 * 5, len(all_records)
    for (task, _, spec, budget, _, protocol), r in all_records.items():
        assert r["group_size"] == 5 and 0 <= r["score"] <= 1 and r["labels"]["category"] == ("multi-doc QA" if task == "hotpotqa" else "few-shot")
        if spec == "full":
            assert r["entries"] == r["prompt_tokens"] if protocol == "question-aware" else r["entries"] < r["prompt_tokens"]
        else:
            assert r["entries"] <= int(budget) + (0 if protocol == "question-aware" else r["prompt_tokens"])
    lengths = {r["labels"].get("length") for r in all_records.values()}
    assert lengths == {"0-4k", "4-8k", "8k+", None}


def test_a_run_survives_kills(work, expected):
    """Twenty kills at random moments, then a run to the end: the records are the same as without kills."""
    chance = random.Random(7)
    for _ in range(20):
        process = subprocess.Popen(command(work, "killed"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.02, 0.5))
        process.send_signal(signal.SIGKILL)
        process.wait()
    run(command(work, "killed"))
    assert records(work, "killed") == expected


def test_a_record_that_was_cut_is_measured_again(work, expected):
    """A write cut by a full disk or a power failure."""
    shutil.copytree(f"{work}/whole", f"{work}/cut")
    path = f"{work}/cut/records.jsonl"
    with open(path) as file:
        text = file.read()
    for length in (len(text) - 5, len(text) // 2, 10):
        with open(path, "w") as file:
            file.write(text[:length])
        assert "measured again" in run(command(work, "cut")).stderr
        assert records(work, "cut") == expected


@pytest.mark.parametrize("count", [2, 4])
def test_shards_add_up(work, merged, expected, count):
    found = records(work, f"merged{count}")
    assert found == expected and list(found) == list(expected), "in the order of one process, too"


def test_a_run_ends_with_its_result_and_the_next_command(work, expected, merged):
    again = run(command(work, "whole"))
    assert again.stdout == run([WINNOW, "eval", "report", f"{work}/whole"]).stdout and "| `full` |" in again.stdout
    shown = re.search(r"`(winnow eval report .*)` draws it", again.stderr)[1]
    run(["sh", "-c", shown.replace("winnow", WINNOW, 1)])
    with open(f"{work}/whole.html") as page:
        assert page.read(15) == "<!doctype html>"
    assert run(command(work, "whole", "-q")).stdout == ""
    part = run(command(work, "shard0of2", "--shard", "0/2"))
    assert part.stdout.startswith("question-aware") and "share 0 of 2" in part.stderr and "draws it" not in part.stderr


def test_a_shard_that_cannot_be(work, data):
    assert "0 <= I < N" in run(command(work, "x", "--shard", "4/4"), code=2).stderr


def test_a_report_has_the_means_of_the_records(work, expected):
    """The figures in tables equal those recomputed from the records."""
    run([WINNOW, "eval", "report", f"{work}/whole", "-o", f"{work}/report.csv"])
    with open(f"{work}/report.csv") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 2 * 2 * 5
    for row in rows:
        of = [r for r in expected.values() if all((r[k] or "") == row[k] for k in ("task", "protocol", "spec", "budget"))]
        mean = sum(r["score"] for r in of) / len(of)
        assert len(of) == int(row["samples"]) == 6 and abs(mean - float(row["score"])) < 1e-6
        assert float(row["low"]) <= mean + 1e-6 and mean <= float(row["high"]) + 1e-6


def test_what_two_folders_have_counts_once(work, merged):
    table = run([WINNOW, "eval", "report", f"{work}/whole"]).stdout
    assert table == run([WINNOW, "eval", "report", f"{work}/whole", f"{work}/merged2"]).stdout, "what both have counts once"
    assert "| `snapkv:window=4` @ 24 |" in table and "question-agnostic" in table


def test_equal_folders_do_not_differ(work, merged):
    same = run([WINNOW, "eval", "compare", f"{work}/whole", f"{work}/merged2"]).stdout
    assert same.count("| +0.0 | 1.000 |") == 20, same


def test_reports_that_cannot_be(work, expected):
    assert ".html, .md or .csv" in run([WINNOW, "eval", "report", f"{work}/whole", "-o", f"{work}/report.pdf"], code=2).stderr
    check_refusal(run([WINNOW, "eval", "report", f"{work}/nothing"], code=1), 1, f"{work}/nothing: no such folder")


def tree(folder):
    """Everything below a folder: contents of files, targets of links."""
    found = {}
    for parent, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(parent, name)
            if os.path.islink(path):
                found[path] = os.readlink(path)
            elif os.path.isdir(path):
                found[path] = None
            else:
                with open(path) as file:
                    found[path] = file.read()
    return found


def test_what_is_not_ours_stays(work, expected):
    """Folders that only look like a run's parts, and links instead of parts and inside them, are left alone."""
    out = f"{work}/others"
    run(command(work, "others", "--shard", "0/2"))
    for name in ("part-of-my-thesis", "part-", "part-01", "part-1x", "part-2", "elsewhere"):
        os.makedirs(f"{out}/{name}/deep")
        for path in (f"{out}/{name}/chapter.txt", f"{out}/{name}/deep/records.jsonl"):
            with open(path, "w") as file:
                file.write("mine")
    os.symlink("elsewhere", f"{out}/part-0")
    shutil.copytree(f"{work}/whole", f"{out}/part-3")  # a complete run, which looks like an older part
    shutil.copytree(f"{work}/whole", f"{out}/part-5")
    os.makedirs(f"{out}/part-4")
    for i in (4, 5):
        with open(f"{out}/part-{i}/winnow-part", "w"):
            pass
    os.symlink("../elsewhere/chapter.txt", f"{out}/part-4/lock.old")
    os.symlink(f"{work}/tiny.gguf", f"{out}/elsewhere/winnow-part")
    before = tree(out)
    said = run(command(work, "others")).stderr
    after = tree(out)
    for path, content in before.items():
        own = path in (f"{out}/records.jsonl", f"{out}/part-4/winnow-part") or path.startswith(f"{out}/part-5")
        assert own or after.get(path) == content and path in after, path
    assert not os.path.exists(f"{out}/part-5") and not os.path.exists(f"{out}/part-4/winnow-part")
    assert records(work, "others") == expected, "a part's records are taken in"
    assert "0 groups measured, 24 known before" in said and "part-2 is not part of this run" in said, said


@pytest.fixture
def own(work, data, tmp_path):
    """A copy of the data, to be damaged."""
    shutil.copytree(data, tmp_path / "data")
    shutil.copy(f"{work}/tiny.gguf", tmp_path)
    return str(tmp_path)


def test_bad_lines_are_named_and_the_others_measured(own):
    work = own
    path = f"{work}/data/longbench/hotpotqa.jsonl"
    with open(path, "a") as file:
        print('{"no json', file=file)
        print('{"context": "c", "input": "i", "answers": []}', file=file)
        print('{"context": "c", "answers": ["a"], "input": 5}', file=file)
    bad = run(command(work, "bad", "--kv", "full,full"), code=1).stderr
    for number in (7, 8, 9):
        assert f"hotpotqa.jsonl line {number}: " in bad, bad
    assert "there are no answers" in bad and "3 lines" in bad
    assert len(records(work, "bad")) == 2 * 6 * 2 * 5, "the other lines are measured"


def test_records_of_another_model_are_refused(work, expected):
    with open(f"{work}/whole/records.jsonl") as file:
        other = file.readline().replace('"model_hash":"', '"model_hash":"0')
    os.makedirs(f"{work}/mixed")
    with open(f"{work}/mixed/records.jsonl", "w") as file:
        file.write(other)
    assert "records.jsonl line 1 is a record of the model with hash" in run(command(work, "mixed"), code=1).stderr


def test_wrong_usage(work, data):
    assert "winnow eval tasks" in run(command(work, "x", tasks=["nonsense"]), code=2).stderr
    assert "cannot make the folder" in run(command(work, "tiny.gguf/x"), code=1).stderr
    for tasks in (["longbench"], ["longbench/hotpotqa"]):
        nowhere = [a.replace(f"{work}/data", f"{work}/nothing") for a in command(work, "x", tasks=tasks)]
        check_refusal(run(nowhere, code=1), 1, f"{work}/nothing: no such folder")
    without = [WINNOW, "eval", "-m", f"{work}/tiny.gguf", "-o", f"{work}/x"]
    check_refusal(run([*without, "longbench/hotpotqa"], code=1), 1, "longbench/hotpotqa cannot be measured: give --data DIR or set WINNOW_DATA")
    check_refusal(run([*without, "longbench"], code=1), 1, "21 tasks cannot be measured: give --data DIR or set WINNOW_DATA")
    several = [*without, "--data", f"{work}/data", "short/wic", "perplexity/chunked", "lines"]
    check_refusal(run(several, code=1), 1, "2 tasks cannot be measured", "no short/wic.jsonl, no text", "WiC", "text/ may have any long texts")
    check_refusal(run([*without, "--kv", "full", "samkv", "reuse"], code=2), 2, "there is no task samkv: separate the elements of a list with commas, as in --kv full,samkv")
    assert "--kv A,B,... " in run([WINNOW, "eval", "--help"]).stdout


@pytest.fixture(scope="module")
def more_data(work, data):
    """Data for needles, and prompts for the distance to the full cache."""
    os.makedirs(f"{work}/data/needle")
    with open(f"{work}/data/needle/hay.txt", "w") as file:
        file.write("There is hay. " * 40)
    os.makedirs(f"{work}/data/longbench-mini")
    with open(f"{work}/data/longbench-mini/any.jsonl", "w") as file:
        print(json.dumps({"prompt": "some words of a prompt, " * 5}), file=file)
    return data


def test_needles(work, more_data):
    run(command(work, "niah", "--length", "60,90", "--limit", "12", "--beyond-context", tasks=["niah"]))
    found = records(work, "niah")
    assert {(r["labels"]["length"], r["labels"]["depth"]) for r in found.values()} == {(n, str(d)) for n in ("60", "90") for d in (0, 25, 50, 75, 100)}
    run([WINNOW, "eval", "report", f"{work}/niah", "-o", f"{work}/niah.csv"])
    with open(f"{work}/niah.csv") as file:
        assert {row["part"] for row in csv.DictReader(file)} == {"60 tokens, words", "90 tokens, words"}


def test_hidden_answers_of_five_kinds(work, more_data, tmp_path):
    """Both splits, answers at chunk borders and off them, and each method alone."""
    folder = f"{tmp_path}/data/needle"
    os.makedirs(folder)
    for name in ("a", "b"):
        with open(f"{folder}/{name}.txt", "w") as file:
            file.write(f"Text {name} is short. " * 60)
    arguments = [WINNOW, "eval", "needles/one", "-m", f"{work}/tiny.gguf", "--data", f"{tmp_path}/data", "--raw", "--threads", "1", "--length", "800", "--limit", "1",
                 "--kv", "full,knorm", "--budget", "24", "--beyond-context", "-o", f"{work}/hidden"]  # fmt: skip
    run([*arguments, "--protocol", "question-aware,question-agnostic"])
    found = list(records(work, "hidden").values())
    assert {r["labels"]["kind"] for r in found} == {"word", "sentence", "digits", "identifier", "code"} and len(found) == 5 * 2 * 2
    assert all(r["group_size"] == 2 and 0 <= r["values"]["longest_part"] <= 1 and r["bytes_held"] > 0 for r in found), found
    run([*arguments, "--split", "tuning", "--kinds", "uuid,word", "--chunk", "20", "--alone"])
    tuning = [r for r in records(work, "hidden").values() if r["labels"]["kind"].startswith("tuning")]
    assert {r["labels"]["kind"] for r in tuning} == {f"tuning, {kind}, {place}" for kind in ("uuid", "word") for place in ("at a border", "off borders")}
    assert all(r["group_size"] == 1 for r in tuning), tuning
    text = run([WINNOW, "eval", "report", f"{work}/hidden"]).stdout
    assert "needles/one 800 tokens, tuning, uuid, off borders" in text and "; reading, ms: " in text, text
    assert "--split" in run([*arguments, "--split", "half"], code=2).stderr
    assert "there is no kind of answer picture (there are word, sentence," in run([*arguments, "--kinds", "picture"], code=2).stderr


def test_distance_to_the_full_cache(work, more_data):
    run(command(work, "near", tasks=["fidelity"]))
    for (_, _, spec, *_), r in records(work, "near").items():
        assert (r["values"]["kl"] < 1e-9 and r["score"] == 1) if spec == "full" else r["values"]["kl"] > 1e-9, r


def test_long_answers(work, data, tmp_path):
    """The kinds of prompts, the spans of the answer, and an answer that does not fit."""
    lines = "".join(f"line {i} of a text\n" for i in range(60))
    for folder, name, text in (("longbench-mini", "gov_report.jsonl", json.dumps({"prompt": "a report " * 9}) + "\n"), ("text", "t.txt", lines), ("needle", "n.txt", lines)):
        os.makedirs(f"{tmp_path}/{folder}")
        with open(f"{tmp_path}/{folder}/{name}", "w") as file:
            file.write(text)
    arguments = [WINNOW, "eval", "fidelity-long", "-m", f"{work}/tiny.gguf", "--data", f"{tmp_path}", "--raw", "--threads", "1", "--kv", "full,h2o",
                 "--budget", "24", "--length", "20", "--limit", "1", "-o", f"{work}/long-answers"]  # fmt: skip
    run([*arguments, "--answer", "70", "--beyond-context"])
    found = list(records(work, "long-answers").values())
    assert {r["labels"]["kind"] for r in found} == {f"{kind}, answer 70" for kind in ("summary", "story", "conversation")}
    for r in found:
        assert set(r["values"]) == {"kl", "kl@64", "kl@70"} and (r["spec"] == "full") == (r["values"]["kl"] < 1e-9), r
    run([*arguments, "--answer", "80", "--beyond-context"])
    assert len(records(work, "long-answers")) == 2 * len(found), "answers of another length are other samples"
    assert "its answer up to 1024, more than the model's context of 256" in run(arguments, code=1).stderr
    assert "--answer" in run([*arguments, "--answer", "1"], code=2).stderr


def test_attention(work, more_data):
    run(command(work, "attention", "--length", "100", tasks=["attention"]))
    found = records(work, "attention")
    assert {key[0] for key in found} == {f"attention/{name}" for name in ("concentration", "loss", "kept", "redundancy", "scores", "blocks")}
    for (task, _, spec, budget, _, protocol), r in found.items():
        if task == "attention/blocks":
            assert "can only be compared from 833 tokens on" in r["skipped"], r
            continue
        # The text and the question each begin with a space.
        assert 0 <= r["score"] <= 1 and r["series"] and 100 <= r["prompt_tokens"] < 110, r
        if task == "attention/kept" and protocol == "question-aware":
            heads = [positions for name, positions in r["series"].items() if name.startswith("kept ")]
            assert len(heads) == 4 and all(len(positions) == int(budget or r["prompt_tokens"]) for positions in heads), r
        if task == "attention/loss":
            assert (r["values"]["loss"] == 0) == (spec == "full") and all(a <= b for a, b in zip(r["series"]["loss"], r["series"]["bound"])), r
    text = run([WINNOW, "eval", "report", f"{work}/attention"]).stdout
    assert "attention/loss 100" in text and "; relative loss, %: " in text and "kept 0.0" not in text, text


def test_a_file_of_one_s_own(work, more_data):
    with open(f"{work}/own.jsonl", "w") as file:
        print(json.dumps({"id": "mine", "text": "a text " * 8, "question": "what?", "outputs": ["x", "y"], "metric": "contains"}), file=file)
    run(command(work, "own", tasks=[f"{work}/own.jsonl"]))
    assert {key[1] for key in records(work, "own")} == {"mine"}


def test_printed_samples_have_the_same_scores(work, more_data, tmp_path):
    with open(f"{tmp_path}/printed.jsonl", "w") as file:
        file.write(run(command(work, "unused", "--print-samples")).stdout)
    run(command(work, "printed", tasks=[f"{tmp_path}/printed.jsonl"]))
    assert not os.path.exists(f"{work}/unused")

    run(command(work, "tasks"))
    printed = {key[1:6]: (r["answer"], r["score"], r.get("values")) for key, r in records(work, "printed").items()}
    assert printed == {(f"{key[0]}/{key[1]}", *key[2:6]): (r["answer"], r["score"], r.get("values")) for key, r in records(work, "tasks").items()}
    refused = run(command(work, "unused", "--print-samples", tasks=["longbench/trec", "fidelity"]), code=2)
    assert "question about a text" in refused.stderr and not refused.stdout


def niah(work, out, *more, code=0):
    """Prompts longer than the tiny model's context of 256 tokens: the message, and the records."""
    said = run(command(work, out, "--length", "600", "--limit", "2", *more, tasks=["niah"]), code=code).stderr
    return said, list(records(work, out).values())


def test_a_prompt_that_does_not_fit_is_an_error(work, more_data):
    said, found = niah(work, "long", code=1)
    numbers = re.search(r"the prompt has (\d+) tokens and its answer up to 10, more than the model's context of 256", said)
    assert numbers and int(numbers[1]) > 600 and not found, said
    assert "--max-prompt" in said and "--beyond-context" in said


def test_max_prompt_cuts_the_middle(work, more_data):
    _, found = niah(work, "cut200", "--max-prompt", "200")
    assert found and all(r["max_prompt"] == r["prompt_tokens"] == 200 and r["cut_tokens"] > 400 and "beyond_context" not in r for r in found)
    assert "4 known before" in niah(work, "cut200", "--max-prompt", "200")[0], "nothing is measured again"
    said, both = niah(work, "cut200", "--max-prompt", "150")
    assert "4 groups measured" in said and len(both) == 2 * len(found), said
    table = run([WINNOW, "eval", "report", f"{work}/cut200"]).stdout
    assert "question-aware/max-prompt=200: mean" in table and "question-aware/max-prompt=150: mean" in table, table
    assert "the question alone has" in niah(work, "question", "--max-prompt", "20", code=1)[0]


def test_beyond_context_reads_prompts_as_they_are(work, more_data):
    _, found = niah(work, "beyond", "--beyond-context")
    assert found and all(r["beyond_context"] == 256 and r["prompt_tokens"] > 600 and "max_prompt" not in r for r in found)
    assert f"{len(found) // 2} records are of prompts that are longer" in run([WINNOW, "eval", "report", f"{work}/beyond"]).stdout


def test_rope_options_widen_the_context(work, more_data):
    _, found = niah(work, "scaled", "--rope-scaling", "linear:8")
    assert found and all(r["rope"] == "linear:8" and "beyond_context" not in r for r in found)
    assert "context of 512" in niah(work, "half", "--rope-scaling", "linear:2", code=1)[0]
    _, found = niah(work, "based", "--rope-freq-base", "1e6")
    assert found and all(r["rope"] == "base:1000000" and r["beyond_context"] == 256 for r in found)


def test_efficiency_beyond_the_context(work, more_data):
    command_line = command(work, "slow", "--length", "300", "--limit", "1", tasks=["efficiency"])
    said = run(command_line, code=1).stderr
    assert re.search(r"the prompt has (29|30)\d tokens, more than the model's context of 256", said), said
    run([*command_line, "--beyond-context"])
    assert all(abs(r["prompt_tokens"] - int(r["labels"]["length"])) < 10 for r in records(work, "slow").values())


def test_a_list_is_one_word(work, more_data):
    """A list is one word: the task may follow it."""
    lists = [["--kv", "full,streaming-llm", "--budget", "24"], ["--kv", "full", "--kv", "streaming-llm", "--budget", "24"]]
    for i, options in enumerate(lists):
        run([WINNOW, "eval", "-m", f"{work}/tiny.gguf", "--data", f"{work}/data", "-o", f"{work}/list{i}", "--raw", "--threads", "1", "--limit", "1",
             "--beyond-context", "--length", "60", *options, "niah"])  # fmt: skip
        assert {key[2] for key in records(work, f"list{i}")} == {"full", "streaming-llm"}


def test_what_is_made_up(work, data):
    made = run(command(work, "made", "--length", "2", "--limit", "2", "--beyond-context", tasks=["lines", "kv-retrieval"]))
    assert len(records(work, "made")) == 2 * 2 * 2 * 5, made.stderr


def test_perplexity(work, data):
    os.makedirs(f"{work}/data/text")
    with open(f"{work}/data/text/t.txt", "w") as file:
        file.write("some words of a text\n" * 50)
    run(command(work, "text", "--length", "128", "--limit", "2", tasks=["perplexity/chunked"]))
    for key, r in records(work, "text").items():
        assert r["values"]["perplexity"] >= 1 and 0 <= r["score"] <= 1, (key, r)


def test_choices(work, data):
    os.makedirs(f"{work}/data/short")
    with open(f"{work}/data/short/wic.jsonl", "w") as file:
        for i in range(4):
            print(json.dumps({"word": "w", "sentence1": f"A w {i}.", "sentence2": "No w.", "label": "true"}), file=file)
    short = run(command(work, "short", "--shots", "1", "--beyond-context", tasks=["short"])).stderr
    assert "tasks cannot be measured: the data folder has no short/" in short and "no short/arc-easy.json" in short, short
    chosen = records(work, "short")
    assert len(chosen) == 3 * 2 * 5 and {r["task"] for r in chosen.values()} == {"short/wic/1-shot"}
    assert all(r["answer"] in ("yes", "no") and r["score"] == (r["answer"] == "yes") for r in chosen.values() if not r.get("skipped"))


def test_throughput(work, more_data):
    options = ["--length", "40,60", "--answer", "5", "--requests", "2,3", "--beyond-context"]
    run(command(work, "served", *options, tasks=["throughput"]))
    found = records(work, "served")
    assert {r["id"] for r in found.values()} == {"40+5x2", "40+5x3", "60+5x2", "60+5x3"}
    assert all(r["values"]["batch"] == int(r["labels"]["requests"]) for r in found.values()), found
    run(command(work, "served", *options, "--memory", "1KiB", tasks=["throughput"]))
    small = [r for r in records(work, "served").values() if r["id"].endswith("-1KiB")]
    assert small and all("all requests together may use at most 1.0 KiB" in r["skipped"] for r in small)


def test_efficiency(work, more_data):
    run(command(work, "fast", "--length", "100", "--limit", "1", tasks=["efficiency"]))
    assert all(r["group_size"] == 1 and r["values"]["decode_tps"] > 0 for r in records(work, "fast").values())


def test_a_task_without_its_file(work, data):
    check_refusal(run(command(work, "x", tasks=["ruler/qa_1"]), code=1), 1, "ruler/qa_1 cannot be measured: the data folder has no ")


def test_a_run_says_first_what_is_to_be_measured(work, data):
    first, again, share = (run(command(work, "outlook", *more)).stderr.splitlines()[0] for more in ([], [], ["--shard", "0/2"]))
    assert first.endswith("12 samples, 120 records to measure, 0 known"), first
    assert again.endswith("12 samples, 0 records to measure, 120 known"), again
    assert share.endswith("12 samples, 0 records to measure, 60 known"), share


def test_records_of_a_prompt_that_has_changed_are_refused(work, data):
    """The error names the sample and both hashes, before anything is measured. An added sample is no change."""
    def lines(*texts):
        with open(f"{work}/changing.jsonl", "w") as file:
            for i, text in enumerate(texts):
                print(json.dumps({"id": f"q{i}", "text": text * 30, "question": "what?", "outputs": ["x"], "max_tokens": 4}), file=file)

    arguments = command(work, "changing", tasks=[f"{work}/changing.jsonl"])
    lines("one ", "two ")
    run(arguments)
    lines("one ", "two ", "three ")
    assert "3 samples, 10 records to measure, 20 known" in run(arguments).stderr
    before = records(work, "changing")
    lines("four ", "one ", "another ", "three ")
    for more in ([], ["--shard", "1/2"]):
        said = run([*arguments, *more], code=1).stderr
        found = re.search(r"prompt for the sample q([01]) of [^ ]*changing[^ ]* \(hash ([0-9a-f]{16}), now ([0-9a-f]{16})\)", said)
        old, now = found.groups()[1:]
        assert old != now and old in {r["prompt_hash"] for r in before.values() if r["id"] == f"q{found[1]}"}, said
        assert "known" not in said and records(work, "changing") == before, said
    lines("two ", "one ")  # the prompts of the two samples, swapped
    assert "q0" in run(arguments, code=1).stderr


def test_a_folder_of_somebody_else_s_stays_as_it_is(work, data):
    os.makedirs(f"{work}/foreign")
    with open(f"{work}/foreign/records.jsonl", "w") as file:
        file.write('{"mine": 1}\n')
    check_refusal(run(command(work, "foreign"), code=1), 1, "foreign/records.jsonl line 1 is not a record: key 'task' not found")
    assert tree(f"{work}/foreign") == {f"{work}/foreign/records.jsonl": '{"mine": 1}\n'}


def test_tasks_are_listed():
    assert "longbench/hotpotqa" in run([WINNOW, "eval", "tasks"]).stdout
