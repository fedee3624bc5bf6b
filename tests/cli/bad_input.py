"""Input that is no good: exit code, one sentence on stderr with what matters in it, nothing on stdout.

bad_input.py WINNOW MAKE_TINY_GGUF
"""

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
        ("unknown flag", ["--nonsense"], ["--nonsense"]),
    ]
    for name, arguments, parts in usage:
        expect(f"usage: {name}", run(with_model(model, *arguments)), 2, *parts)
    expect("usage: budget too small", run(["run", "-m", model, "--raw", "-f", long, "--json", "--kv", "snapkv", "--budget", "32"]), 2, "32", "33")
    expect("usage: no model", run(["run", "-p", "x"]), 2, "WINNOW_MODEL")
    expect("usage: no prompt", run(["run", "-m", model]), 2, "-f")
    expect("usage: unknown method name", run(["methods", "nope"]), 2, "nope")

    beyond = run(["run", "-m", model, "--raw", "-f", long, "-n", "1"])
    if beyond.returncode != 0 or "6004" not in beyond.stderr or "256" not in beyond.stderr:
        failures.append(f"prompt beyond the context: {beyond.returncode} {beyond.stderr!r}")

    def little_memory():
        resource.setrlimit(resource.RLIMIT_AS, (230 << 20, 230 << 20))

    huge = variant("huge.txt", b"some words " * 9_000)
    refused = run(["run", "-m", model, "--raw", "-f", huge, "--json", "--threads", "1"], preexec_fn=little_memory)
    no_room = ("AddressSanitizer failed to allocate", "AddressSanitizer: internal allocator is out of memory")
    if not any(words in refused.stderr for words in no_room):  # its shadow alone is terabytes
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
