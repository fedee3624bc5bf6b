# SPDX-License-Identifier: Apache-2.0
"""No fault loses a user's data: every command that writes is run with each system call failing in turn, or with the
process killed at it. Afterwards the earlier data are there, and the same command, run again, does its work.

faults.py errors|kills WINNOW MAKE_TINY_GGUF FAULTS_LIBRARY [COMMAND...]
"""

import dataclasses
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
from typing import Callable

MODE = sys.argv[1]
WINNOW, TINY, LIBRARY = map(os.path.abspath, sys.argv[2:5])
ONLY = sys.argv[5:]
PATIENCE = 60
# The number of calls of a function to try: the first, the last and some between. A run has thousands of malloc calls.
TRIED = {"malloc": 12}
TRIED_OTHERWISE = 6
ERRORS = {"open": errno.EMFILE, "read": errno.EIO, "write": errno.ENOSPC, "sync": errno.EIO, "rename": errno.EACCES,
          "truncate": errno.EIO, "map": errno.ENOMEM, "thread": errno.EAGAIN, "malloc": errno.ENOMEM}  # fmt: skip
KILLS = ("open", "write", "sync", "rename", "truncate", "map")


@dataclasses.dataclass
class Case:
    """A command, the files that it finds, and the checks of the folder afterwards."""

    name: str
    arguments: list[str]
    before: Callable[[pathlib.Path], None]
    kept: Callable[[pathlib.Path], object]  # the user's earlier data, which no fault may change
    done: Callable[[pathlib.Path], object]  # the command's result, the same as after a run without a fault
    stdin: str = ""


def environment(folder, **more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("WINNOW_")}
    return clean | {"HOME": str(folder), "XDG_DATA_HOME": f"{folder}/data"} | more


def winnow(folder, arguments, stdin="", **more):
    command = [WINNOW, *(a.replace("@", f"{folder}/") for a in arguments)]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, errors="replace", timeout=PATIENCE,
                          cwd=folder, env=environment(folder, **more))  # fmt: skip


def succeed(folder, arguments, **options):
    result = winnow(folder, arguments, **options)
    assert result.returncode == 0, (arguments, result.returncode, result.stderr)
    return result


def bytes_of(name):
    return lambda folder: (folder / name).read_bytes() if (folder / name).exists() else None


def prompts(folder, count):
    lines = [json.dumps({"id": f"p{i}", "text": f"fact {i} " * 9, "question": "which?"}) for i in range(count)]
    (folder / "in.jsonl").write_text("\n".join(lines) + "\n")


def samples(folder, count):
    lines = [{"id": f"s{i}", "text": f"fact {i} " * 9, "question": "which?", "outputs": [f"fact {i}"]} for i in range(count)]
    (folder / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def lines_of(name, *fields):
    """Lines of a file, reduced to the fields that are the same in every run."""

    def read(folder):
        lines = [json.loads(line) for line in (folder / name).read_text().splitlines()]
        return sorted(json.dumps([line[f] for f in fields]) for line in lines)

    return read


def first_lines(name, count):
    return lambda folder: (folder / name).read_text().splitlines()[:count]


def documents(folder):
    listed = json.loads(succeed(folder, ["docs", "list", "--store", "@shelf", "--json"]).stdout)["documents"]
    succeed(folder, ["docs", "verify", "--store", "@shelf"])
    return {d["name"]: d["tokens"] for d in listed}


TEXT = "one two three four " * 12
MODEL = ["-m", "@tiny.gguf", "--threads", "1"]
RUN = ["run", *MODEL, "--raw", "-n", "3", "--ignore-eos"]
JSONL = [*RUN, "--jsonl", "@in.jsonl", "-o", "@out.jsonl"]
EVAL = ["eval", "mine.jsonl", *MODEL, "--raw", "--kv", "full,streaming-llm", "--budget", "24", "-o", "@results"]
SAVE = [*RUN, "-f", "@text.txt", "--save-kv", "@text.kv", "--kv", "streaming-llm", "--budget", "20"]
DUMP = [*RUN, "-f", "@text.txt", "-p", "who?", "--dump-kept", "@kept.json", "--kv", "streaming-llm", "--budget", "20"]
CHAT = ["chat", *MODEL, "--temp", "0", "-n", "3", "--ignore-eos"]
ADD = ["docs", "add", *MODEL, "--store", "@shelf"]


def some_answers(folder):
    prompts(folder, 2)
    succeed(folder, JSONL)
    prompts(folder, 4)


def some_records(folder):
    samples(folder, 1)
    succeed(folder, EVAL)
    samples(folder, 2)


def shelf(folder):
    for name in ("one", "two"):
        (folder / f"{name}.txt").write_text(f"chapter {name} " * 4)
    succeed(folder, [*ADD, "@one.txt"])


def exported(folder):
    shelf(folder)
    succeed(folder, ["docs", "export", "--store", "@shelf", "one.txt", "-o", "@one.doc"])
    shutil.rmtree(folder / "shelf")
    succeed(folder, [*ADD, "@two.txt"])


def an_earlier_one(arguments, stdin=""):
    """Makes the file that the command will replace, from another text."""

    def make(folder):
        (folder / "text.txt").write_text("five six seven eight " * 10)
        succeed(folder, arguments, stdin=stdin)
        (folder / "text.txt").write_text(TEXT)

    return make


CASES = [
    Case("run --save-kv", SAVE, an_earlier_one(SAVE), bytes_of("text.txt"), bytes_of("text.kv")),
    Case("run --dump-kept", DUMP, an_earlier_one(DUMP), bytes_of("text.txt"), bytes_of("kept.json")),
    Case("run --jsonl", JSONL, some_answers, first_lines("out.jsonl", 2), lines_of("out.jsonl", "id", "answer")),
    Case("eval", EVAL, some_records, first_lines("results/records.jsonl", 2),
         lines_of("results/records.jsonl", "task", "id", "spec", "answer", "score")),
    Case("eval report", ["eval", "report", "@results", "-o", "@report.md"], some_records,
         first_lines("results/records.jsonl", 2), bytes_of("report.md")),
    Case("docs add", [*ADD, "@two.txt"], shelf, lambda f: documents(f)["one.txt"], documents),
    Case("docs rm", ["docs", "rm", "--store", "@shelf", "one.txt"], lambda f: (shelf(f), succeed(f, [*ADD, "@two.txt"])),
         lambda f: documents(f)["two.txt"], documents),
    Case("docs export", ["docs", "export", "--store", "@shelf", "one.txt", "-o", "@one.doc"], shelf, documents,
         bytes_of("one.doc")),
    Case("docs import", ["docs", "import", "--store", "@shelf", "@one.doc"], exported,
         lambda f: documents(f)["two.txt"], documents),
    Case("chat /save", CHAT, an_earlier_one(CHAT, "goodbye\n/save talk.kv\n"), bytes_of("text.txt"),
         bytes_of("talk.kv"), stdin="hello\n/save talk.kv\n"),
]  # fmt: skip


def replaced_whole(case, folder, old, new):
    """Checks that a replaced file is always either the old or the new one."""
    now = case.done(folder)
    assert isinstance(now, bytes) is False or now in (old, new), f"{len(now)} bytes, neither the old nor the new file"


def fresh(case, template):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="winnow-faults-"))
    shutil.copytree(template, folder, dirs_exist_ok=True)
    return folder


def counted(case, template):
    """The number of calls of each function in a run without a fault, and the result of that run."""
    folder = fresh(case, template)
    count = folder.with_suffix(".count")
    succeed(folder, case.arguments, stdin=case.stdin, LD_PRELOAD=LIBRARY, WINNOW_FAULT_UNDER=f"{folder}/",
            WINNOW_FAULT_COUNT=str(count))  # fmt: skip
    calls = {name: int(n) for name, n in (line.split() for line in count.read_text().splitlines())}
    count.unlink()
    done = case.done(folder)
    shutil.rmtree(folder)
    return calls, done


def chosen(function, calls):
    """The numbers of the calls to try."""
    tried = min(calls, TRIED.get(function, TRIED_OTHERWISE))
    return sorted({1 + round(i * (calls - 1) / max(1, tried - 1)) for i in range(tried)})


def check_end(result, what):
    if what == 0:
        assert result.returncode in (-signal.SIGKILL, 0), f"exit code {result.returncode}"
        return
    assert result.returncode in (0, 1), f"exit code {result.returncode}: {result.stderr[-300:]!r}"
    if result.returncode == 1:
        assert result.stderr.strip().splitlines()[-1].strip(), "no word about it"
        assert "terminate called" not in result.stderr, result.stderr


def with_fault(case, template, new, function, number, what):
    folder = fresh(case, template)
    had, old = case.kept(folder), case.done(folder)
    fault = f"{function}:{number}:{what or 'kill'}"
    result = winnow(folder, case.arguments, case.stdin, LD_PRELOAD=LIBRARY, WINNOW_FAULT_UNDER=f"{folder}/",
                    WINNOW_FAULT=fault)  # fmt: skip
    check_end(result, what)
    assert case.kept(folder) == had, "what was there has changed"
    replaced_whole(case, folder, old, new)
    if result.returncode == 0 and what:
        assert case.done(folder) == new, "exit code 0, but not done"
    winnow(folder, case.arguments, case.stdin)
    assert case.done(folder) == new, "the same command again does not end with the same"
    shutil.rmtree(folder)


def failures_of(case, template):
    calls, new = counted(case, template)
    found, tried = [], 0
    for function in ERRORS if MODE == "errors" else KILLS:
        for number in chosen(function, calls[function]):
            tried += 1
            try:
                with_fault(case, template, new, function, number, ERRORS[function] if MODE == "errors" else 0)
            except AssertionError as error:
                found.append(f"{case.name}: {function} {number} of {calls[function]}: {error}")
    print(f"{case.name}: {tried} of {sum(calls.values())} calls tried, {len(found)} findings", flush=True)
    return found


def main():
    found = []
    for case in CASES:
        if ONLY and case.name not in ONLY:
            continue
        template = pathlib.Path(tempfile.mkdtemp(prefix="winnow-faults-"))
        subprocess.run([TINY, f"{template}/tiny.gguf", "llama", "chatml"], check=True)
        (template / "text.txt").write_text(TEXT)
        case.before(template)
        found += failures_of(case, template)
        shutil.rmtree(template)
    print("\n".join(found))
    sys.exit(1 if found else 0)


main()
