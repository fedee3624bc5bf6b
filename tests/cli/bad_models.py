"""Model files that are no good or go bad while they are used, and too little memory for a good one: exit code 1, one
sentence on stderr with what matters in it, nothing on stdout.

bad_models.py WINNOW MAKE_TINY_GGUF
"""

import json
import os
import resource
import struct
import subprocess
import sys
import tempfile

WINNOW, TINY = sys.argv[1:3]
ADDRESS_SANITIZED = b"__asan_init" in open(WINNOW, "rb").read()  # its shadow alone is terabytes
failures = []


def start(arguments, **options):
    environment = {k: v for k, v in os.environ.items() if k != "WINNOW_MODEL"}
    return subprocess.Popen([WINNOW, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, **options)


def run(arguments, timeout=60, **options):
    process = start(arguments, **options)
    try:
        out, err = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        err += b"\nstill running\n"
    return process.returncode, out, err.decode(errors="replace")


def one_sentence(err):
    return [line for line in err.splitlines() if not line.startswith("warning:")]


def expect(name, result, code, *parts):
    returned, out, err = result
    problems = []
    if returned != code:
        problems.append(f"exit code {returned}, expected {code}")
    if len(one_sentence(err)) != 1:
        problems.append(f"{len(one_sentence(err))} lines on stderr")
    problems += [f"no '{part}'" for part in parts if part not in err]
    if out:
        problems.append("something on stdout")
    if problems:
        failures.append(f"{name}: {'; '.join(problems)}\n  {err[-2000:]!r}")


def value_of(data, key):
    """Where a key's value lies in a GGUF."""
    return data.index(key) + len(key) + 4


with tempfile.TemporaryDirectory() as folder:
    model = f"{folder}/tiny.gguf"
    subprocess.run([TINY, model], check=True)
    good = open(model, "rb").read()

    def variant(name, *changes):
        data = bytearray(good)
        for at, new in changes:
            data[at : at + len(new)] = new
        with open(f"{folder}/{name}", "wb") as file:
            file.write(data)
        return f"{folder}/{name}"

    def asking(path, *more):
        return ["run", "-m", path, "--raw", "-p", "hello", "-n", "4", *more]

    epsilon = value_of(good, b"llama.attention.layer_norm_rms_epsilon")
    for name, number, said in [("nan", float("nan"), "nan"), ("negative", -1e-5, "-1e-05"), ("infinite", float("inf"), "inf")]:
        path = variant(f"epsilon-{name}.gguf", (epsilon, struct.pack("<f", number)))
        expect(f"epsilon: {name}", run(asking(path)), 1, "llama.attention.layer_norm_rms_epsilon", said)
    i32 = good.index(b"blk.0.attn_q.weight") + len(b"blk.0.attn_q.weight") + 4 + 2 * 8
    expect("matrix of i32", run(asking(variant("i32.gguf", (i32, struct.pack("<I", 26))))), 1, "blk.0.attn_q.weight", "i32")
    # The last floats of the file are of the last layer's ffn_down.
    nan = variant("nan.gguf", (len(good) - 64, struct.pack("<16f", *[float("nan")] * 16)))
    expect("weights that are NaN", run(asking(nan)), 1, "blk.1.ffn_down.weight", "not a finite number")

    os.mkfifo(f"{folder}/pipe.gguf")
    for command in [asking(f"{folder}/pipe.gguf"), ["inspect", f"{folder}/pipe.gguf"], ["bench", "-m", f"{folder}/pipe.gguf"]]:
        expect(f"FIFO: {command[0]}", run(command, timeout=20), 1, "pipe.gguf", "not a regular file")

    name_at = value_of(good, b"general.name") + 8
    colours = variant("colours.gguf", (name_at, b"\x1b[7m"))
    code, out, err = run(["inspect", colours])
    if code != 0 or b"\x1b" in out or b"\\x1b[7m" not in out:
        failures.append(f"escapes in a name: {code} {out!r} {err!r}")
    code, out, err = run(["inspect", "--json", variant("latin1.gguf", (name_at, b"t\xefny"))])
    if code != 0 or not json.loads(out)["name"].startswith("t"):
        failures.append(f"a name that is no UTF-8: {code} {out!r} {err!r}")
    kind_at = value_of(good, b"general.architecture") + 8
    code, out, err = run(asking(variant("kind.gguf", (kind_at, b"\x1b[31m"))))
    if code != 1 or "\x1b" in err or "\\x1b[31m" not in err:
        failures.append(f"escapes in the architecture: {code} {err!r}")

    cut = variant("cut.gguf")
    process = start(["run", "-m", cut, "--raw", "-p", "hello", "-n", "1000000", "--ignore-eos"])
    process.stdout.read(20)  # it is answering
    os.truncate(cut, len(good) // 2)
    _, err = process.communicate(timeout=60)
    lines = one_sentence(err.decode())
    if process.returncode != 1 or len(lines) != 1 or "cut.gguf" not in lines[0] or "cut while" not in lines[0]:
        failures.append(f"cut while it is mapped: {process.returncode} {err!r}")

    with open(f"{folder}/huge.txt", "wb") as file:
        file.write(b"many words " * 4_600_000)
    expect("50 MB for a context of 256", run(["run", "-m", model, "--raw", "-f", f"{folder}/huge.txt"], timeout=20), 1, "50600000 bytes", "tokens", "256")
    expect("50 MB as a document", run(["docs", "add", "-m", model, "--store", f"{folder}/store", f"{folder}/huge.txt"], timeout=20), 1, "tokens", "256")

    def limited(megabytes):
        return lambda: resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))

    if not ADDRESS_SANITIZED:
        starts = next(n for n in range(16, 1024, 2) if run(["methods"], preexec_fn=limited(n))[0] == 0)
        for megabytes in range(starts, starts + 2000, 2):
            code, out, err = run(asking(model, "--threads", "2", "-q"), preexec_fn=limited(megabytes))
            if code == 0:
                break
            if code != 1 or len(one_sentence(err)) != 1:  # an answer may have begun
                failures.append(f"{megabytes} MB of address space: {code} {out!r} {err[-1000:]!r}")
        expect("no room for threads", run(asking(model, "--threads", "200"), preexec_fn=limited(megabytes + 100)), 1, "200 threads")
    expect("too many threads", run(asking(model, "--threads", "100000")), 2, "100000 threads")

print("\n".join(failures) or "all as expected")
sys.exit(1 if failures else 0)
