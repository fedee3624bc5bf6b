"""Input that is no good: exit code, one sentence on stderr with what matters in it, nothing on stdout.

bad_input.py WINNOW MAKE_TINY_GGUF
"""

import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time

WINNOW, TINY = sys.argv[1:3]
failures = []


def run(arguments, **options):
    environment = {k: v for k, v in os.environ.items() if k != "WINNOW_MODEL"}
    return subprocess.run([WINNOW, *arguments], capture_output=True, text=True, errors="replace", timeout=120, env=environment, **options)


def expect(name, result, code, *parts):
    lines = [line for line in result.stderr.splitlines() if not line.startswith("warning:")]
    problems = []
    if result.returncode != code:
        problems.append(f"exit code {result.returncode}, expected {code}")
    if len(lines) != 1:
        problems.append(f"{len(lines)} lines on stderr")
    problems += [f"no '{part}'" for part in parts if part not in result.stderr]
    if result.stdout:
        problems.append("something on stdout")
    if problems:
        failures.append(f"{name}: {'; '.join(problems)}\n  {result.stderr!r}")


with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/tiny.gguf"
    subprocess.run([TINY, model], check=True)
    good = open(model, "rb").read()

    def variant(name, data):
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
        return f"{folder}/{name}"

    def with_model(path, *more):
        return ["run", "-m", path, "--raw", "-p", "hello", "--json", *more]

    subprocess.run([TINY, f"{folder}/mamba.gguf", "mamba"], check=True)
    shape = good.find(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4
    models = [
        ("missing", f"{folder}/absent.gguf", ["absent.gguf", "No such file"]),
        ("folder", folder, ["is a folder"]),
        ("empty", variant("empty.gguf", b""), ["0 bytes"]),
        ("truncated", variant("cut.gguf", good[: len(good) // 2]), ["truncated", str(len(good) // 2)]),
        ("no GGUF", variant("text.gguf", b"just some text, long enough for a header"), ["not a GGUF"]),
        ("architecture", f"{folder}/mamba.gguf", ["mamba", "llama, qwen2, qwen3, gemma"]),
        ("hostile header", variant("hostile.gguf", good[:8] + b"\xff" * 16 + good[24:]), ["cannot fit"]),
        ("shape", variant("shape.gguf", good[:shape] + (32).to_bytes(8, "little") + good[shape + 8 :]), ["blk"]),
    ]
    for name, path, parts in models:
        expect(f"model: {name}", run(with_model(path)), 1, *parts)
    if os.getuid() != 0:
        os.chmod(variant("locked.gguf", good), 0)
        expect("model: unreadable", run(with_model(f"{folder}/locked.gguf")), 1, "Permission denied")

    empty = variant("empty.txt", b"")
    long = variant("long.txt", b"many words " * 400)
    expect("empty prompt", run(["run", "-m", model, "--raw", "-f", empty]), 1, "empty")
    expect("text that is not there", run(["run", "-m", model, "--raw", "-f", f"{folder}/absent.txt"]), 1, "absent.txt")
    expect("text that is a folder", run(["run", "-m", model, "--raw", "-f", folder]), 1, "folder")
    expect("no chat template", run(["run", "-m", model, "-p", "hello"]), 2, "--raw")

    usage = [
        ("method", ["--kv", "snapky"], ["snapky", "did you mean snapkv"]),
        ("option", ["--kv", "snapkv:windw=3"], ["windw", "did you mean window"]),
        ("value", ["--kv", "snapkv:window=0", "--budget", "50"], ["window=0", "1 to 65536"]),
        ("unbalanced", ["--kv", "ada(snapkv"], ["ada"]),
        ("deep", ["--kv", "a(" * 50 + "snapkv" + ")" * 50], ["a"]),
        ("budget missing", ["--kv", "snapkv"], ["budget"]),
        ("budget 0", ["--kv", "snapkv", "--budget", "0"], ["'0'"]),
        ("budget negative", ["--kv", "snapkv", "--budget=-3"], ["'-3'"]),
        ("budget no number", ["--kv", "snapkv", "--budget", "many"], ["'many'"]),
        ("budget over 100 %", ["--kv", "snapkv", "--budget", "120%"], ["'120%'"]),
        ("kv type", ["--kv-type", "q5_1"], ["q5_1", "q8_0"]),
        ("threads", ["--threads", "0"], ["0 threads"]),
        ("precision", ["--precision", "f16"], ["f16", "bf16"]),
        ("pack", ["--pack", "column"], ["column", "resident"]),
        ("pack in f32", ["--pack", "layer", "--precision", "f32"], ["layer", "f32"]),
        ("scaling", ["--rope-scaling", "yarn"], ["yarn", "linear"]),
        ("temperature", ["--temp", "-1"], ["-1"]),
        ("temperature no number", ["--temp", "nan"], ["nan"]),
        ("repeat penalty", ["--repeat-penalty", "0"], ["penalty is 0"]),
        ("tokens", ["-n", "-1"], ["-1", "0 to 2147483647"]),
        ("log probabilities", ["--logprobs", "-1"], ["-1", "0 to 2147483647"]),
        ("escapes", ["--kv", "\x1b[31mred"], ["\\x1b[31mred"]),
        ("unknown flag", ["--nonsense"], ["--nonsense"]),
    ]
    for name, arguments, parts in usage:
        expect(f"usage: {name}", run(with_model(model, *arguments)), 2, *parts)
    expect("usage: budget too small", run(["run", "-m", model, "--raw", "-f", long, "--json", "--kv", "snapkv", "--budget", "32"]), 2, "32", "33")
    expect("usage: no model", run(["run", "-p", "x"]), 2, "WINNOW_MODEL")
    expect("usage: no prompt", run(["run", "-m", model]), 2, "-f")
    expect("usage: unknown method name", run(["methods", "nope"]), 2, "nope")

    # What cannot be is refused before the text is read: this one's pipe has no writer.
    os.mkfifo(f"{folder}/pipe")
    waiting = ["run", "-m", model, "--raw", "-f", f"{folder}/pipe"]
    for name, arguments, code, parts in [
        ("temperature", ["--temp", "-1"], 2, ["the temperature is -1"]),
        ("top-p", ["--top-p", "2"], 2, ["top-p is 2"]),
        ("unwritable --dump-kept", ["--dump-kept", f"{folder}/absent/kept.json"], 1, ["absent/kept.json", "No such file"]),
        ("--dump-kept to a folder", ["--dump-kept", folder], 1, ["it is a folder"]),
        ("--save-kv to a link to nothing", ["--save-kv", f"{folder}/dangling"], 1, ["a link to what is not there"]),
    ]:
        if not os.path.islink(f"{folder}/dangling"):
            os.symlink("nowhere", f"{folder}/dangling")
        expect(f"early: {name}", run([*waiting, *arguments]), code, *parts)
    expect("early: --dump-kept with --jsonl", run(["run", "-m", model, "--jsonl", f"{folder}/pipe", "-o", f"{folder}/o", "--dump-kept", f"{folder}/k"]), 2, "--dump-kept")

    # Control characters of names are shown, not sent to the terminal.
    steering = "\x1b]0;title\x07\x9b\r\n"
    expect("name: text", run(["run", "-m", model, "--raw", "-f", f"{folder}/{steering}"]), 1, "\\x1b]0;title\\x07", "\\x0d\\x0a")
    expect("name: model", run(with_model(f"{folder}/{steering}.gguf")), 1, "\\x1b]0;title\\x07")
    with open(f"{folder}/{steering}", "w") as file:
        file.write("some words to keep " * 4)
    store = ["--store", f"{folder}/store"]
    expect("name: document", run(["docs", "add", "-m", model, f"{folder}/{steering}", *store]), 2, "\\x1b]0;title\\x07")
    expect("name: export", run(["docs", "import", f"{folder}/{steering}", *store]), 1, "\\x1b]0;title\\x07")
    names = [run(["run", "-m", model, "--raw", "-f", f"{folder}/{steering}", "-p", "hello", "-n", "0", "--save-kv", f"{folder}/{steering}.kv"])]
    names.append(run(["inspect", f"{folder}/{steering}.kv"]))
    for result in names:
        if result.returncode != 0 or any(c in result.stdout + result.stderr for c in "\x1b\x07\x9b\r") or "\\x1b]0;title" not in result.stdout + result.stderr:
            failures.append(f"name: {result.returncode} {result.stdout!r} {result.stderr!r}")

    # A file that is opened must not become stdin, stdout or stderr.
    subprocess.run([WINNOW, "docs", "add", "-m", model, f"{folder}/{steering}", "--name", "kept", *store, "-q"], check=True)
    for closed in ("<&- >&-", "<&- >&- 2>&-", ">&-", "<&- 2>&-"):
        for command in ("list", "verify", "show kept"):
            subprocess.run(["sh", "-c", f'"$0" docs {command} --store "$1" {closed}', WINNOW, f"{folder}/store"], capture_output=True)
        verified = run(["docs", "verify", *store])
        if verified.returncode != 0 or "1 documents" not in verified.stdout:
            failures.append(f"closed descriptors {closed}: {verified.stdout!r} {verified.stderr!r}")
    for closed, words in ((">&-", "cannot write to stdout"), ("<&-", "")):
        result = subprocess.run(["sh", "-c", f'"$0" methods {closed}', WINNOW], capture_output=True, text=True)
        if (result.returncode, words in result.stderr) != (1 if words else 0, True):
            failures.append(f"methods {closed}: {result.returncode} {result.stderr!r}")

    chat = ["chat", "-m", model, "--raw"]
    for closed, words in (("<&-", "cannot read stdin"), ('<"$1"', "it is a folder"), ('0>"$1"/written', "cannot read stdin")):
        shell = ["sh", "-c", f'"$0" chat -m "$2" --raw {closed}', WINNOW, folder, model]
        result = subprocess.run(shell, capture_output=True, text=True, timeout=120)
        if result.returncode != 1 or words not in result.stderr or result.stderr.count("\n") != 1:
            failures.append(f"chat {closed}: {result.returncode} {result.stderr!r}")

    # A file that grows over the limit is a write that fails; what was there stays.
    def small_files():
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    for option, another in (("--save-kv", "--dump-kept"), ("--dump-kept", "--save-kv")):
        written = f"{folder}/written{option}"
        asking = ["run", "-m", model, "--raw", "-f", long, "-n", "1", "-p", "x", "-q", "--json"]
        if run([*asking, option, written]).returncode != 0:
            failures.append(f"{option} cannot be written")
        before = open(written, "rb").read()
        expect(f"file limit: {option}", run([*asking, option, written], preexec_fn=small_files), 1, "File too large", written)
        expect(f"another kind of file: {another}", run([*asking, another, written]), 1, "what is there is not", written)
        if open(written, "rb").read() != before or [name for name in os.listdir(folder) if "winnow-part" in name]:
            failures.append(f"{option}: what was there is gone, or a part is left")

    mine = variant("mine.txt", b"a text of mine\n")
    for name, command in (
        ("--save-kv", ["run", "-m", model, "--raw", "-f", long, "--save-kv", mine]),
        ("--dump-kept", ["run", "-m", model, "--raw", "-f", long, "-n", "0", "--dump-kept", mine]),
        ("export", ["docs", "export", "kept", "-o", mine, *store]),
    ):
        expect(f"a file of mine: {name}", run(command), 1, "mine.txt", "what is there is not")
    if open(mine, "rb").read() != b"a text of mine\n":
        failures.append("a file of mine was replaced")
    for path in (f"{folder}/exported", f"{folder}/written--save-kv"):
        if path.endswith("exported"):
            run(["docs", "export", "kept", "-o", path, *store])
        if os.stat(path).st_mode & 0o777 != 0o600:
            failures.append(f"{path} holds what was read, and its mode is {os.stat(path).st_mode:o}")

    # 60,000 levels of JSON.
    deep = "[" * 60_000 + "]" * 60_000
    deep_line = variant("deep.jsonl", (json.dumps({"text": "words", "outputs": ["x"]})[:-1] + f', "id": {deep}}}\n').encode())
    for command in (["tune", "-m", model, "-f", deep_line, "--raw"], ["eval", deep_line, "-m", model, "--raw", "-o", f"{folder}/records"]):
        result = run(command)
        if result.returncode != 1 or "deep.jsonl line 1: " not in result.stderr or "64 levels" not in result.stderr:
            failures.append(f"deep: {command[0]}: {result.returncode} {result.stderr!r}")
    for name, text in (("array", deep), ("object", '{"spec": ' + deep + "}")):
        expect(f"deep: kept {name}", run(["inspect", "--kept", variant("deep.json", text.encode())]), 1, "deep.json")

    nothing = run(["run", "-m", model, "--raw", "-p", "hello", "-n", "0", "--json"])
    if nothing.returncode != 0 or json.loads(nothing.stdout)["timings"]["decode_tokens_per_second"] < 0 or "-" in run(["run", "-m", model, "--raw", "-p", "hello", "-n", "0"]).stderr.split("decode")[1]:
        failures.append(f"no tokens: {nothing.stdout!r} {nothing.stderr!r}")

    beyond = run(["run", "-m", model, "--raw", "-f", long, "-n", "1"])
    if beyond.returncode != 0 or "6004" not in beyond.stderr or "256" not in beyond.stderr:
        failures.append(f"prompt beyond the context: {beyond.returncode} {beyond.stderr!r}")

    def little_memory():
        resource.setrlimit(resource.RLIMIT_AS, (230 << 20, 230 << 20))

    huge = variant("huge.txt", b"some words " * 9_000)
    if b"__asan_init" not in open(WINNOW, "rb").read():  # the sanitizer's shadow alone is terabytes
        refused = run(["run", "-m", model, "--raw", "-f", huge, "--json", "--threads", "1"], preexec_fn=little_memory)
        expect("memory", refused, 1, "available")

    with open("/dev/full", "w") as full:
        result = subprocess.run([WINNOW, "methods"], stdout=full, stderr=subprocess.PIPE, text=True)
    if result.returncode != 1 or "cannot write to stdout" not in result.stderr:
        failures.append(f"full stdout: {result.returncode} {result.stderr!r}")
    reader, writer = os.pipe()
    os.close(reader)
    result = subprocess.run([WINNOW, "methods"], stdout=writer, stderr=subprocess.PIPE, text=True)
    if result.returncode != 1 or "cannot write to stdout" not in result.stderr:
        failures.append(f"closed stdout: {result.returncode} {result.stderr!r}")

    process = subprocess.Popen([WINNOW, "run", "-m", model, "--raw", "-f", long, "-n", "1000000", "--ignore-eos"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.read(20)  # it is answering
    process.send_signal(signal.SIGINT)
    begin = time.time()
    _, errors = process.communicate(timeout=60)
    if process.returncode != 130 or b"decode" not in errors or time.time() - begin > 30:
        failures.append(f"Ctrl-C: {process.returncode} {errors!r}")

print("\n".join(failures) or "all as expected")
sys.exit(1 if failures else 0)
