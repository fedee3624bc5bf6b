# SPDX-License-Identifier: Apache-2.0
"""If a server cannot start one of its threads, whichever it is, it exits with code 1 and one sentence.

threads.py WINNOW MAKE_TINY_GGUF FAULTS_LIBRARY
"""

import errno
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

WINNOW, TINY, LIBRARY = map(os.path.abspath, sys.argv[1:4])
PATIENCE = 60


def serve(folder, **more):
    command = [WINNOW, "serve", "-m", f"{folder}/tiny.gguf", "--port", "0", "--threads", "3", "--documents", f"{folder}/shelf",
               "--sessions", f"{folder}/sessions"]  # fmt: skip
    clean = {name: value for name, value in os.environ.items() if not name.startswith("WINNOW_")}
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=clean | {"LD_PRELOAD": LIBRARY} | more)


def threads_of_a_start(folder):
    count = folder / "count"
    with serve(folder, WINNOW_FAULT_COUNT=str(count)) as server:
        for line in server.stderr:
            if "listening on" in line:
                break
        server.send_signal(signal.SIGTERM)
        server.stderr.read()
        assert server.wait(PATIENCE) == 0
    calls = dict(line.split() for line in count.read_text().splitlines())
    return int(calls["thread"])


def main():
    with tempfile.TemporaryDirectory(prefix="winnow-threads-") as work:
        folder = pathlib.Path(work)
        subprocess.run([TINY, f"{folder}/tiny.gguf", "llama", "chatml"], check=True)
        threads_of_a_start(folder)  # makes the shelf, with threads that it can do without
        count = threads_of_a_start(folder)
        assert count > 6, count
        for number in range(1, count + 1):
            with serve(folder, WINNOW_FAULT=f"thread:{number}:{errno.EAGAIN}") as server:
                try:
                    _, said = server.communicate(timeout=PATIENCE)
                except subprocess.TimeoutExpired:
                    server.kill()
                    raise AssertionError(f"thread {number} of {count}: the server neither starts nor ends") from None
            assert server.returncode == 1, (number, server.returncode, said)
            lines = [line for line in said.splitlines() if line.startswith("winnow: ")]
            # Before ggml's own pool starts, winnow starts as many threads for trial. If only the pool's threads fail,
            # ggml's assert reports it.
            assert len(lines) == 1 and ("thread" in lines[0] or "ggml cannot continue" in lines[0]), (number, said)
            print(f"thread {number} of {count}: {lines[0]}")


main()
