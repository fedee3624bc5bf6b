# SPDX-License-Identifier: Apache-2.0
"""`--help` for each option, and shell completions."""

import json
import os
import pathlib
import re
import shutil
import subprocess

import pytest
from program import PATIENCE, WINNOW

COMPLETION = pathlib.Path(__file__).resolve().parents[2] / "completions/winnow.bash"


def said(*arguments):
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, (arguments, result.stderr)
    return result.stdout


def commands(*above):
    """A command and its subcommands, each with its parents."""
    below = said(*above, "--help").partition("\nSubcommands:\n")[2].partition("\n\n")[0]
    names = [(*above, line.split()[0]) for line in below.splitlines() if line[:3].strip()]
    return [above] + [deeper for name in names for deeper in commands(*name)]


def options(command):
    """Names, form and description of each option that --help lists."""
    found = {}
    lines = said(*command, "--help").partition("\nOptions:\n")[2].partition("\nSubcommands:\n")[0].splitlines()
    for line in lines:
        if re.match(r"  -", line):
            names, form, description = re.match(r"  (-\S+)\s?(.*?)(?:\s{2,}(.*))?$", line).groups()
            found[names] = [form or "", description or ""]
        elif line.startswith("   ") and found:
            last = found[list(found)[-1]]
            last[1] = f"{last[1]} {line.strip()}".strip()
    return found


@pytest.fixture(scope="module")
def all_options():
    return {command: options(command) for command in commands()}


def test_each_option_with_a_value_says_its_default(all_options):
    """Flags have neither a type nor a default."""
    checked = 0
    for command, of_command in all_options.items():
        for names, (form, description) in of_command.items():
            if re.match(r"(TEXT|UINT|INT|FLOAT|[A-Z],)", form) and "REQUIRED" not in form:
                assert re.search(r"\(default: .+\)|; default: .+\)", f"{form} {description}"), (command, names, form, description)
                checked += 1
    assert checked > 150, checked
    assert not any("default" in description for of_command in all_options.values() for names, (form, description) in of_command.items() if not form)


def test_no_option_has_two_defaults(all_options):
    for command, of_command in all_options.items():
        for names, (_, description) in of_command.items():
            assert description.count("(default: ") + description.count("; default: ") <= 1, (command, names, description)


def test_help_is_a_command_too():
    for command in ([], ["run"], ["docs"], ["docs", "add"], ["papers", "run"]):
        assert said("help", *command) == said(*command, "--help")


def refused(*arguments):
    result = subprocess.run([WINNOW, *arguments], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 2 and not result.stdout, (arguments, result)
    return result.stderr


WRONG_NUMBERS = [
    ("--max-tokens: abc is not a whole number", "run", "-n", "abc"),
    ("--max-tokens: 1.5 is not a whole number", "run", "-n", "1.5"),
    ("--max-tokens: -5 is less than 0", "run", "--max-tokens=-5"),
    ("--max-tokens: 99999999999 is more than 2147483647", "run", "-n", "99999999999"),
    ("--parallel: 0 is less than 1", "run", "--parallel", "0"),
    ("--port: 65536 is not from 0 to 65535", "serve", "--port", "65536"),
    ("--depth: x is not a whole number", "eval", "--depth", "10,x"),
    ("--min-fidelity: 98 is not from 0 to 1", "tune", "-f", "x", "--min-fidelity", "98"),
    ("--min-fidelity: much is not a number", "tune", "-f", "x", "--min-fidelity", "much"),
    ("--top-k = abc is not a number that the option accepts", "run", "--top-k", "abc"),
    ("--memory 64MB is not a size: give 0, bytes, KiB, MiB or GiB", "serve", "-m", "x", "--memory", "64MB"),
]


@pytest.mark.parametrize("sentence, arguments", [pytest.param(sentence, arguments, id=" ".join(arguments)) for sentence, *arguments in WRONG_NUMBERS])
def test_a_wrong_number_is_named(sentence, arguments):
    errors = refused(*arguments)
    assert errors.startswith(f"winnow: {sentence}") and errors.count("\n") == 1, errors


def test_an_unknown_command_has_no_help():
    for arguments in (["rum", "--help"], ["--help", "rum"], ["help", "rum"]):
        assert refused(*arguments).startswith("winnow: there is no command rum: did you mean run?"), arguments
    assert "there is no command lst: did you mean list?" in refused("docs", "lst", "--help")
    assert said("run", "text.txt", "--help") == said("run", "--help"), "what is no place of a command does not hide the help"


def test_a_command_that_needs_another_one_shows_its_help():
    for command in ([], ["docs"]):
        errors = refused(*command)
        assert errors.startswith(said(*command, "--help")) and errors.splitlines()[-1] == f"winnow: {' '.join(['winnow', *command])} needs a command"


DEFAULTS = {
    ("run", "--temp"): "0",
    ("run", "-n,--max-tokens"): "256",
    ("run", "--parallel"): "16",
    ("run", "--kv"): "full; with --budget: auto",
    ("run", "--kv-type"): "f16; with a budget in bytes: q8_0",
    ("run", "--save-kv"): "none",
    ("run", "--seed"): "0",
    ("run", "-f,--file"): "stdin if it is piped",
    ("chat", "-f,--file"): "none",
    ("serve", "--seed"): "random",
    ("serve", "-n,--max-tokens"): "1024",
    ("serve", "--port"): "8080; 0: any free one",
    ("serve", "--max-body"): "32MiB",
    ("tune", "--budget"): "64,128,256,512,1024,2048",
    ("tune", "--min-fidelity"): "0.98",
    ("bench", "-p,--n-prompt"): "512",
    ("eval", "--kv"): "full; with --budget: auto",
}


@pytest.mark.parametrize("place", DEFAULTS, ids=" ".join)
def test_a_default_is_the_value_that_is_used(all_options, place):
    description = all_options[place[:1]][place[1]][1]
    assert description.endswith(f"(default: {DEFAULTS[place]})"), description


def test_tune_names_the_methods_that_it_tries(all_options):
    described = all_options[("tune",)]["--kv"][1]
    assert "auto,snapkv:window=8" in described and "streaming-llm" in described and "default: full" not in described


def completed(*words):
    return [line.split("\t")[0] for line in said("complete", *words).splitlines()]


def test_commands_and_options_are_those_of_help(all_options):
    assert set(completed("")) == {command[0] for command in all_options if len(command) == 1}
    for command, of_command in all_options.items():
        names = {name for names in of_command for name in names.split(",") if name.startswith("--")}
        assert set(completed(*command, "--")) == names, command


def test_values_are_those_that_the_command_takes():
    methods = {method["name"] for method in json.loads(said("methods", "--json"))}
    assert set(completed("run", "-m", "model.gguf", "--kv", "")) == methods
    assert completed("run", "--kv", "snapk") == ["snapkv"]
    assert "ada(snapkv" in completed("run", "--kv", "ada(sna")
    assert "full,snapkv" in completed("eval", "--kv", "full,sna")
    assert set(completed("run", "--kv-type", "")) == {"f32", "f16", "bf16", "q8_0", "q4_0"}
    assert completed("run", "--kv-type", "q8_0/q4") == ["q8_0/q4_0"]
    assert set(completed("run", "--kv-type", "q8_0/")) == {f"q8_0/{name}" for name in ("f32", "f16", "bf16", "q8_0", "q4_0")}
    assert completed("serve", "--protocol", "question-ag") == ["question-agnostic"]
    assert set(completed("bench", "-o", "")) == {"md", "csv", "json"}
    assert completed("serve", "--log-format", "j") == ["json"]
    tasks = {line.split()[0] for line in said("eval", "tasks").splitlines()}
    assert tasks <= set(completed("eval", ""))
    assert completed("eval", "longbench/hotp") == ["longbench/hotpotqa"]
    assert set(completed("eval", "needles/")) == {task for task in tasks if task.startswith("needles/")} != set()
    assert completed("eval", "no-such-group/") == []
    papers = {line.split()[0] for line in said("papers").splitlines()}
    assert set(completed("papers", "run", "")) == papers == set(completed("papers", "show", ""))
    assert set(completed("papers", "show", "ems/")) == {name for name in papers if name.startswith("ems/")} != set()
    assert set(completed("docs", "ask", "--method", "")) >= {"samkv", "recompute", "epic"}


def test_a_file_is_completed_by_the_shell():
    for words in (["run", "-f", ""], ["run", "-m", "mod"], ["docs", "add", ""]):
        assert completed(*words) == []


def test_documents_of_the_store_are_completed(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    assert completed("docs", "ask", "--doc", "") == []


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
def test_bash_completes(tmp_path):
    script = f"""source {COMPLETION}
complete_line() {{ COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _winnow; printf '%s\\n' "${{COMPREPLY[@]}}"; }}
complete_line winnow run --kv snapk; complete_line winnow ev; complete_line winnow eval = longbench/hotp"""
    environment = {**os.environ, "PATH": f"{pathlib.Path(WINNOW).parent}:{os.environ['PATH']}"}
    result = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env=environment, timeout=PATIENCE)
    assert result.stdout.split() == ["snapkv", "eval", "longbench/hotpotqa"], result
