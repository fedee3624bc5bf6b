# SPDX-License-Identifier: Apache-2.0
"""`mpirun winnow eval`: several processes write the same records as one, in the same order; if a process dies, only its
current work is lost."""

import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest
from program import WINNOW

pytestmark = pytest.mark.skipif(
    os.environ.get("WINNOW_HAS_MPI") != "ON" or not shutil.which("mpirun"), reason="mpirun is not there, or winnow was built without MPI"
)
# Allows several processes on few cores, in a container, and as root. Open MPI's own leaks are ignored.
ENVIRONMENT = {**os.environ, "ASAN_OPTIONS": "detect_leaks=0", "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
               "OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_mpi_yield_when_idle": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}  # fmt: skip


def eval_command(work, out, tasks="own"):
    return [WINNOW, "eval", f"{work}/{tasks}.jsonl", "-m", f"{work}/tiny.gguf", "-o", f"{work}/{out}", "--raw", "--threads", "1", "--beyond-context",
            "--kv", "full,snapkv:window=4,streaming-llm", "--budget", "24,48", "--protocol", "question-aware,question-agnostic"]  # fmt: skip


def run(arguments, code=0, environment=ENVIRONMENT):
    result = subprocess.run(arguments, capture_output=True, text=True, timeout=300, env=environment)
    assert result.returncode == code, (arguments, result.returncode, result.stderr)
    return result


def ranks(count, work, out, code=0):
    return run(["mpirun", "-n", str(count), *eval_command(work, out)], code)


def records(work, out):
    """A run's records in order, without fields that differ between any two runs."""
    with open(f"{work}/{out}/records.jsonl") as file:
        found = [json.loads(line) for line in file]
    for record in found:
        record.pop("timings")
    return found


def children(parent):
    """The children of a process."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                if int(file.read().rsplit(")", 1)[1].split()[1]) == parent:
                    found.append(int(name))
        except OSError:
            pass  # it has ended
    return found


def measured(work, out):
    """Bytes of the records in the parts of a run."""
    parts = [f"{work}/{out}/part-{i}/records.jsonl" for i in range(2)]
    return sum(os.path.getsize(part) for part in parts if os.path.exists(part))


def measured_by(work, out, process):
    """Records of one process of a run."""
    path = f"{work}/{out}/part-{process}/records.jsonl"
    if not os.path.exists(path):
        return 0
    with open(path) as file:
        return len(file.readlines())


def write_tasks(work, *lines, samples=9, name="own"):
    with open(f"{work}/{name}.jsonl", "w") as file:
        for i in range(samples):
            print(json.dumps({"id": f"q{i}", "text": f"a text {i} " * 30, "question": "what?", "outputs": ["x"], "max_tokens": 6}), file=file)
        for line in lines:
            print(line, file=file)


@pytest.fixture(scope="module")
def expected(work, model):
    """The records of one process."""
    write_tasks(work)
    run(eval_command(work, "one"))
    found = records(work, "one")
    assert len(found) == 9 * 2 * 5
    return found


@pytest.mark.parametrize("count", [1, 2, 4])
def test_records_are_those_of_one_process(work, expected, count):
    write_tasks(work, "no json")
    said = ranks(count, work, f"of{count}", code=1).stderr
    write_tasks(work)
    assert records(work, f"of{count}") == expected
    assert said.count("line 10") == 1 and said.count("groups measured") == 1, "the first process speaks for all"
    assert "18 groups measured" in said and not [name for name in os.listdir(f"{work}/of{count}") if name.startswith("part-")]


def test_what_one_process_has_measured_is_known_to_several(work, expected):
    shutil.copytree(f"{work}/one", f"{work}/known")
    assert "18 known before" in ranks(2, work, "known").stderr


def test_a_process_that_dies_costs_what_it_was_at(work, expected):
    """A process is killed when it has records to lose, and MPI ends the others; another number of processes does the
    rest."""
    process = subprocess.Popen(["mpirun", "-n", "2", *eval_command(work, "died")], env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while process.poll() is None and not measured(work, "died"):
        time.sleep(0.002)
    for child in children(process.pid)[-1:]:
        os.kill(child, signal.SIGKILL)
    assert process.wait(60) != 0, "it had ended before"
    assert measured(work, "died") > 0, "what was measured stays"
    assert "| `full` |" in run([WINNOW, "eval", "report", f"{work}/died"]).stdout, "what there is can be looked at"
    again = ranks(4, work, "died").stderr
    known = int(again.split(" known before")[0].split()[-1])
    assert 0 < known < 18 and records(work, "died") == expected, again


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_says_once_how_to_go_on(work, expected, number):
    """On Ctrl-C, mpirun waits a second, sends SIGTERM to its processes and soon kills them. The first process's message
    counts the others' records too."""
    out = f"stopped-{number.name}"
    samples = 1000  # several times as many as the fastest machine measures in that second
    write_tasks(work, samples=samples, name="many")
    command = ["mpirun", "-n", "2", *eval_command(work, out, "many")]
    process = subprocess.Popen(command, env=ENVIRONMENT, stderr=subprocess.PIPE, text=True)
    while process.poll() is None and not all(measured_by(work, out, i) for i in range(2)):
        time.sleep(0.002)
    process.send_signal(number)
    said = process.communicate(timeout=60)[1]
    assert process.returncode != 0, said
    counts = re.findall(f"{work}/{out} has ([0-9]+) records?: winnow eval report {work}/{out} shows them, and the same command continues", said)
    assert len(counts) == 1 and said.count("the same command continues") == 1, said
    each = [measured_by(work, out, i) for i in range(2)]
    # The other process may have been about to write its last group of 5.
    assert max(each) < int(counts[0]) and sum(each) - 5 <= int(counts[0]) <= sum(each), (said, each)
    again = run(command).stderr
    assert f"{sum(each)} known" in again and len(records(work, out)) == samples * 2 * 5, again


def test_a_folder_that_has_a_part_s_name_is_not_written_to(work, expected):
    """An existing folder with a part's name is not written to."""
    os.makedirs(f"{work}/taken/part-1")
    with open(f"{work}/taken/part-1/chapter.txt", "w") as file:
        file.write("mine")
    assert "part-1 was not made by winnow eval" in ranks(2, work, "taken", code=1).stderr
    assert os.listdir(f"{work}/taken/part-1") == ["chapter.txt"]


def test_shards_do_not_go_with_ranks(work, expected):
    assert "--shard cannot be combined with mpirun" in run(["mpirun", "-n", "2", *eval_command(work, "x"), "--shard", "0/2"], code=2).stderr
