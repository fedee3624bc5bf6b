# SPDX-License-Identifier: Apache-2.0
"""Output of `winnow run`, `methods` and `inspect` with a small random model."""

import json
import os
import pathlib
import re
import subprocess

import pytest
from program import PATIENCE, WINNOW, make_tiny_gguf

SNAPKV = ["--kv", "snapkv:window=8", "--budget", "40"]


def run(*arguments, code=0, **process):
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=PATIENCE, **process)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


@pytest.fixture(scope="module")
def base(work, model):
    """The arguments of a command that reads a text."""
    with open(f"{work}/text.txt", "w") as file:
        file.write("some words to read " * 8)
    return ["run", "-m", model, "-f", f"{work}/text.txt", "--raw", "-n", "6", "--ignore-eos"]


@pytest.fixture(scope="module")
def record(work, base):
    return json.loads(run(*base, *SNAPKV, "-p", "and?", "--json", "--logprobs", "3", "--dump-kept", f"{work}/kept.json").stdout)


def test_a_record_has_all_its_fields(record):
    assert record.keys() >= {"model", "spec", "spec_full", "budget", "kv_type", "protocol", "answer", "finish_reason", "tokens", "cache", "cache_end",
                             "timings", "logprobs", "system"}  # fmt: skip
    held = {"entries_per_head_mean", "entries_min", "entries_max", "attended_per_head_mean", "bytes_held", "bytes_full", "peak_bytes", "rss_peak_bytes"}
    assert record["cache"].keys() >= held and record["cache_end"].keys() >= held
    assert record["timings"].keys() >= {"load_ms", "prefill_ms", "prefill_tokens_per_second", "time_to_first_token_ms", "decode_ms", "decode_tokens_per_second"}


def test_a_record_says_what_was_done(record):
    assert record["spec"] == "snapkv:window=8" and record["budget"] == "40" and record["finish_reason"] == "length"
    assert record["tokens"]["generated"] == 6 and len(record["logprobs"]) == 6 and len(record["logprobs"][0]["top"]) == 3
    assert record["cache"]["entries_min"] == record["cache"]["entries_max"] == 40
    assert record["cache"]["bytes_full"] == record["tokens"]["prompt"] * 2 * 2 * 64 * 4, "layers * KV heads * dimensions * (key and value in f16)"


def test_what_was_kept_is_dumped(work, record):
    with open(f"{work}/kept.json") as file:
        kept = json.load(file)
    n = record["tokens"]["prompt"]
    assert kept["n_prompt"] == n and len(kept["layers"]) == 2 and len(kept["layers"][0]) == 2
    for head in (head for layer in kept["layers"] for head in layer):
        assert head == sorted(head) and len(head) == 40 and head[-8:] == list(range(n - 8, n))


@pytest.mark.parametrize("more", [[], ["--protocol", "question-agnostic"]])
def test_texts_are_kept_for_later_runs(base, tmp_path, more):
    """Another question with another method reads only the rest, and has the answer of a run without texts."""
    texts = ["--texts", str(tmp_path / "texts"), "--texts-size", "1GiB"]
    first = json.loads(run(*base, *more, "-p", "and?", "--json", *texts).stdout)
    assert first["cached_tokens"] == 0 and first["read_tokens"] == first["tokens"]["prompt"]
    for question in ("where?", "why?"):
        known = json.loads(run(*base, *more, *SNAPKV, "-p", question, "--json", *texts).stdout)
        alone = json.loads(run(*base, *more, *SNAPKV, "-p", question, "--json").stdout)
        assert known["answer"] == alone["answer"] and known["cached_tokens"] >= 64 and "cached_tokens" not in alone
        assert known["read_tokens"] == alone["read_tokens"] - known["cached_tokens"]
    assert "memory is 0 bytes" in run(*base, "-p", "and?", *texts, "--prefix-memory", "0", code=2).stderr


def test_no_more_threads_than_cores_that_may_be_used(base):
    def on_one_core():
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    result = run(*base, "--json", preexec_fn=on_one_core)
    assert json.loads(result.stdout)["system"]["threads"] == 1 and "share" not in result.stderr
    assert "3 threads share 1 core" in run(*base, "--dry-run", "--threads", "3", preexec_fn=on_one_core).stderr


def test_greedy_answers_repeat(base):
    first = run(*base, *SNAPKV, "-p", "and?")
    assert "snapkv:window=8 @ 40" in first.stderr
    quiet = run(*base, *SNAPKV, "-p", "and?", "-q")
    assert quiet.stderr == "" and quiet.stdout == first.stdout


def test_sampled_answers_depend_on_the_seed(base):
    first, again, other = (run(*base, "-p", "and?", "--temp", "1", "--seed", seed).stdout for seed in ("1", "1", "2"))
    assert first == again != other


@pytest.mark.parametrize("protocol", ["question-aware", "question-agnostic"])
def test_several_questions_are_answered_as_each_alone(base, protocol):
    command = [*base, *SNAPKV, "--protocol", protocol, "--json"]
    several = json.loads(run(*command, "-p", "and?", "-p", "or not?").stdout)
    alone = [json.loads(run(*command, "-p", question).stdout) for question in ("and?", "or not?")]
    assert [a["answer"] for a in several["answers"]] == [a["answer"] for a in alone]


def test_jsonl_goes_on_where_it_was_cut(work, model):
    with open(f"{work}/in.jsonl", "w") as file:
        for i in range(20):
            file.write(json.dumps({"id": f"q{i}", "text": "some words " * (i + 5), "question": "and?"}) + "\n")
        file.write("no json\n")
        file.write(json.dumps({"text": 3}) + "\n")
    command = ["run", "-m", model, "--raw", "-n", "4", "--ignore-eos", *SNAPKV, "--jsonl", f"{work}/in.jsonl", "-o", f"{work}/out.jsonl"]
    failed = run(*command, code=1)
    assert "in.jsonl line 21" in failed.stderr and "in.jsonl line 22" in failed.stderr
    with open(f"{work}/out.jsonl") as file:
        lines = file.read().splitlines()
    answers = {(r := json.loads(line))["id"]: r["answer"] for line in lines}
    assert list(answers) == [f"q{i}" for i in range(20)]
    with open(f"{work}/out.jsonl", "w") as file:
        file.write("".join(line + "\n" for line in lines[:16]) + lines[16][:20])
    run(*command, code=1)
    with open(f"{work}/out.jsonl") as file:
        assert {(r := json.loads(line))["id"]: r["answer"] for line in file} == answers


def test_memory_is_told_with_the_weights_and_without_them(base):
    size = r"[\d.]+ [KMG]iB"
    dry = run(*base, *SNAPKV, "-p", "x", "--dry-run").stdout
    assert re.search(rf"at most {size} at the peak, about {size} with the weights", dry)
    assert re.search(rf"{size} at the peak, {size} with the weights", run(*base, *SNAPKV, "-p", "x").stderr)
    told = json.loads(run(*base, *SNAPKV, "-p", "x", "--dry-run", "--json").stdout)
    took = json.loads(run(*base, *SNAPKV, "-p", "x", "--json").stdout)["cache_end"]
    assert told["rss_peak_bytes"] > told["peak_bytes"] and took["rss_peak_bytes"] > took["peak_bytes"]


@pytest.mark.parametrize("questions", [["and?"], ["and?", "or some other words that are not a word?"]], ids=len)
@pytest.mark.parametrize("protocol", ["question-aware", "question-agnostic"])
@pytest.mark.parametrize("kv", ["full", "snapkv:window=8", "kvzip", "lookahead(snapkv:window=8)", "auto", "quest(snapkv:window=8)"])
def test_a_dry_run_says_what_the_run_will_take(model, work, kv, protocol, questions):
    """The tokens that pass through the layers, and an upper bound of the memory."""
    with open(f"{work}/dry.txt", "w") as file:
        file.write("some words to read, and a few more " * 30)
    command = ["run", "-m", model, "-f", f"{work}/dry.txt", "--raw", "-n", "6", "--ignore-eos", "--kv", kv, "--protocol", protocol, "--json"]
    command += [] if kv == "full" else ["--budget", "200"]
    for question in questions:
        command += ["-p", question]
    told, took = (json.loads(run(*command, *more).stdout) for more in (["--dry-run"], []))
    assert told["read_tokens"] == took["read_tokens"]
    last = took["answers"][-1] if len(questions) > 1 else took
    assert last["cache_end"]["peak_bytes"] <= told["peak_bytes"]


def test_a_dry_run_says_what_is_read_again(base):
    """kvzip reads the text and its repetition."""
    command = [*base, "-p", "some words to read " * 30, "--dry-run"]
    once = re.search(r"^reads (\d+) tokens$", run(*command).stdout, re.M)
    again = re.search(r"^reads (\d+) tokens, (\d+) with further passes and repetitions$", run(*command, "--kv", "kvzip", "--budget", "100").stdout, re.M)
    assert once[1] == again[1] and int(again[2]) > 2 * int(again[1])
    assert re.search(r"^[\d.]+ s or more until the answer, because the first \d+ tokens took [\d.]+ s$", run(*command).stdout, re.M)


def test_a_cut_answer_is_named(base):
    command = [*base[: base.index("-n")], "--ignore-eos", "-p", "some words"]
    cut = run(*command, "-n", "3").stderr
    assert "the answer was cut off after 3 tokens (-n)\n" in cut and "after 1 token (-n)\n" in run(*command, "-n", "1").stderr, cut
    for more in (["-n", "0"], ["-n", "3", "-q"], ["-n", "3", "--json"]):
        assert "was cut" not in run(*command, *more).stderr, more


def test_it_says_in_words_what_is_kept(base):
    prompt = "some words to read " * 8
    tokens = json.loads(run(*base, "-p", prompt, "--json").stdout)["tokens"]["prompt"]
    assert f"all {tokens} tokens kept, " in run(*base, "-p", prompt).stderr
    assert f"20 of {tokens} tokens kept in each head, " in run(*base, "--kv", "snapkv:window=8", "--budget", "20", "-p", prompt).stderr
    by_head = run(*base, "--kv", "ada-snapkv:window=8", "--budget", "20", "-p", prompt).stderr
    assert re.search(rf"\b20 of {tokens} tokens kept per head, \d+ to \d+ by head, ", by_head), by_head


def test_thoughts_are_no_answer(work, model, thinks):
    few = ["run", "-m", model, "-n", "6", "--ignore-eos", "--chat-template", thinks]
    said = run(*few, "-p", "hello")
    assert said.stdout == "\n" and not said.stderr.startswith("\n"), said
    record = json.loads(run(*few, "-p", "hello", "--json").stdout)
    assert record["answer"] == "" and record["reasoning"], record
    with open(f"{work}/thinks.jsonl", "w") as file:
        file.write('{"id": "a", "prompt": "hello"}\n')
    run(*few, "--jsonl", f"{work}/thinks.jsonl", "-o", f"{work}/thought.jsonl")
    answer = json.loads(pathlib.Path(f"{work}/thought.jsonl").read_text())
    assert (answer["answer"], answer["reasoning"]) == ("", record["reasoning"])


def test_methods_are_listed():
    assert {"full", "streaming-llm", "snapkv"} <= {m["name"] for m in json.loads(run("methods", "--json").stdout)}
    assert "window" in run("methods", "snapkv").stdout
    listed = [line.split()[0] for line in run("methods").stdout.splitlines()]
    assert {"kvzip", "kvzip(X)", "ada(X)"} <= set(listed) and len(set(listed)) == len(listed), "a wrapper is told from a method of its name"
    assert "(X): " not in run("methods").stdout, "the name is said once"


@pytest.mark.parametrize("name", ["quest", "kvzip", "snapkv", "ada", "pyramid(ada(h2o))"])
def test_json_says_of_a_method_what_text_says(name):
    """A preset and a wrapper can share a name."""
    text = run("methods", name).stdout
    described = json.loads(run("methods", name, "--json").stdout)
    titles = [f"{m['name']}{'' if m['parts'] else '(X)'}: {m['summary']}" for m in described]
    assert titles == re.findall(r"^\S.*", text, re.M) and "\n\n\n" not in text
    options = [[o["name"], f"{o['effect']} (default {o['default']}; {o['range']})"] for m in described for o in m["options"]]
    parts = [[place, what] for m in described for place, what in m["parts"].items()]
    lines = [re.split(r"  +", line.strip(), maxsplit=1) for line in text.splitlines() if line.startswith("  ")]
    for said in options + parts:
        assert said in lines, said
    assert len([line for line in lines if len(line) == 2]) == len(options) + len(parts)


def test_auto_goes_by_the_protocol(base):
    """`auto` runs the method that `winnow methods auto` names. It needs a budget, and is no method within others."""
    named = json.loads(run("methods", "auto", "--json").stdout)[0]["parts"]
    assert len(set(named.values())) == len(named) == 2
    for protocol, spec in named.items():
        of = {kv: json.loads(run(*base, "--kv", kv, "--budget", "40", "--protocol", protocol, "-p", "and?", "--json").stdout) for kv in ("auto", spec)}
        assert of["auto"]["spec"] == spec
        assert of["auto"]["tokens"] == of[spec]["tokens"]
    assert "winnow: auto needs a budget: " in run(*base, "--kv", "auto", "-p", "and?", code=2).stderr
    listed = run(*base, "--kv", "atuo", "-p", "and?", code=2).stderr
    assert "did you mean auto?" in listed and " ada(X)" in listed and " streaming-llm" in listed, listed
    assert " auto" not in run(*base, "--kv", "ada(atuo)", "--budget", "9", "-p", "and?", code=2).stderr, "it is no method within another"


def test_a_model_is_inspected(model):
    assert json.loads(run("inspect", model, "--json").stdout)["kv_bytes_per_token"] == 2 * 2 * 64 * 4


def test_sizes_of_a_model_are_those_of_the_file_and_of_memory(model):
    """All tensors of the tiny model are f32, and each byte is counted once."""
    described, text = json.loads(run("inspect", model, "--json").stdout), run("inspect", model).stdout
    size = os.path.getsize(model)
    assert described["file_bytes"] == size and list(described["file_types"]) == ["f32"]
    assert described["file_types"]["f32"] == 4 * described["n_params"] < size
    assert re.search(r"^  weights: f32 100 %; [\d.]+ [KM]iB on the disk, [\d.]+ [KM]iB in memory$", text, re.M), text


@pytest.mark.skipif("WINNOW_TEST_MODEL" not in os.environ, reason="WINNOW_TEST_MODEL is not set")
def test_types_of_a_real_model_add_up(model):
    real = os.environ["WINNOW_TEST_MODEL"]
    described = json.loads(run("inspect", real, "--json").stdout)
    size = os.path.getsize(real)
    assert described["file_bytes"] == size and 0.95 * size < sum(described["file_types"].values()) < size
    shares = list(described["file_types"].values())
    assert len(shares) > 1 and shares == sorted(shares, reverse=True)


def test_a_budget_alone_means_auto(base):
    """Because `full` would ignore a budget."""
    specs = {}
    for options in (["--budget", "40"], ["--kv", "auto", "--budget", "40"], []):
        specs[len(options)] = [json.loads(run(*base, *options, "--protocol", protocol, "-p", "and?", "--json").stdout)["spec"] for protocol in ("question-aware", "question-agnostic")]
    assert specs[2] == specs[4] and len(set(specs[2])) == 2 and specs[0] == ["full", "full"]


def test_experts_of_a_model_are_counted(work, model):
    mixture = make_tiny_gguf(f"{work}/mixture.gguf", "qwen3moe")
    assert "2 of 8 experts for a token" in run("inspect", mixture).stdout
    assert json.loads(run("inspect", mixture, "--json").stdout)["n_expert_used"] == 2
    assert "experts" not in run("inspect", model).stdout


def test_windows_are_inspected(work):
    model = make_tiny_gguf(f"{work}/windows.gguf", "gemma3")
    seen = json.loads(run("inspect", model, "--json").stdout)
    assert (seen["window"], seen["window_layers"], seen["global_layers"]) == (8, 6, 1)
    assert seen["kv_bytes_per_token"] == 2 * 2 * 64 * 2
    assert [layer["window"] for layer in seen["layers"]] == [8] * 5 + [0, 8]
    assert "6 of 7 layers see a window of 8 tokens" in run("inspect", model).stdout
    saved, text = f"{work}/windows.kv", pathlib.Path(work, "windows.txt")
    text.write_text("one two three four " * 10)
    result = json.loads(run("run", "-m", model, "--raw", "-f", text, "-p", "?", "-n", "4", "--kv", "snapkv:window=4", "--budget", "32",
                            "--save-kv", saved, "--json").stdout)
    assert result["cache"]["entries_per_head_mean"] == 32
    saved = json.loads(run("inspect", saved, "--json").stdout)
    assert saved["entries_min"] == saved["entries_max"]
    assert [layer["window"] for layer in saved["model"]["layers"]] == [8] * 5 + [0, 8]


def test_help_and_version():
    assert run("--version").stdout.startswith("winnow ")
    assert "run" in run("--help").stdout
    for command in ("run", "methods", "inspect"):
        assert "Example" in run(command, "--help").stdout, command


def commands(*above):
    """The subcommands of a command, each with its parents."""
    below = run(*above, "--help").stdout.partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    names = [(*above, line.split()[0]) for line in below.splitlines() if line[:3].strip()]
    return names + [deeper for name in names for deeper in commands(*name)]


def test_examples_are_the_command_s_own():
    found = {name: re.search(r"Examples?:\n  (.*)", run(*name, "--help").stdout) for name in commands()}
    assert ("papers", "report") in found and ("eval", "report") in found, found
    for name, example in found.items():
        assert not example or example[1].startswith(f"winnow {' '.join(name)}"), (name, example)
    assert all(found[name] for name in found if name[0] == "papers") and found["eval", "report"]


def test_answers_of_a_grammar(work, model, base):
    with open(f"{work}/digits.gbnf", "w") as file:
        file.write('root ::= [0-9]{2} "."? [0-9]')
    for sampling in ([], ["--temp", "2", "--seed", "5"]):
        answer = json.loads(run(*base, *sampling, "--grammar", f"{work}/digits.gbnf", "--json").stdout)["answer"]
        assert re.fullmatch(r"\d\d\.?\d", answer)


def test_a_grammar_that_cannot_be_is_one_sentence(work, model, base):
    for text, code, words in (("", 1, "empty"), ('rot ::= "a"', 2, "'root'"), ('root ::= "a"{3,1}', 2, "1 is less than 3")):
        with open(f"{work}/wrong.gbnf", "w") as file:
            file.write(text)
        errors = run(*base, "-q", "--grammar", f"{work}/wrong.gbnf", code=code).stderr
        assert words in errors and errors.count("\n") == 1, errors


def test_a_chat_template_of_the_users(work, model, base):
    """A template that writes only the content works like `--raw`, with the blank line as a part of the text."""
    file = pathlib.Path(work) / "own.jinja"
    asked = [argument for argument in base if argument != "--raw"]
    file.write_text("{{ messages[0].content }}")
    by_template = json.loads(run(*asked, "--chat-template", file, "-p", "and?", "--json").stdout)
    assert by_template["answer"] == json.loads(run(*base, "-p", "\n\nand?", "--json").stdout)["answer"]
    file.write_text("{{ messages[0].content")
    assert "chat template" in run(*asked, "--chat-template", file, "-p", "and?", code=2).stderr
    file.write_text("nothing")
    assert "message 1, which is the user's" in run(*asked, "--chat-template", file, "-p", "and?", code=2).stderr
    assert str(work) in run(*asked, "--chat-template", f"{work}/missing.jinja", "-p", "and?", code=1).stderr
