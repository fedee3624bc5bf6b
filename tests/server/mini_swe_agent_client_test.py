# SPDX-License-Identifier: Apache-2.0
"""mini-swe-agent repairs a file of a made-up repository, by each API of the server.

The small model cannot know what to do, so a proxy between the server and the agent narrows the schema of the agent's
tool to one command for each turn. Requests and answers are real; the tool's grammar makes the model write that command.
"""

import contextlib
import copy
import http.server
import json
import os
import subprocess
import sys
import threading

import pytest
from program import PATIENCE

PROGRAM = "def add(a, b):\n    return a - b\n"
CHECK = "python3 -c \"import sums; assert sums.add(2, 3) == 5; print('it works')\""
COMMANDS = ["cat sums.py", "sed -i 's/a - b/a + b/' sums.py", CHECK, "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"]
ONE_OF_MANY = {"tool_choice": "required", "parallel_tool_calls": False}
# Model name, prefix of the API's paths, the agent's class, a function that finds a tool's schema, and the fields that
# demand one call.
WAYS = {
    "chat": ("openai/tiny", "/v1", "litellm", lambda tool: tool["function"]["parameters"], ONE_OF_MANY),
    "responses": ("openai/tiny", "/v1", "litellm_response", lambda tool: tool["parameters"], ONE_OF_MANY),
    "messages": ("anthropic/tiny", "", "litellm", lambda tool: tool["input_schema"], {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}),
}
CALM = {"cost_tracking": "ignore_errors", "model_kwargs.api_key": "none", "model_kwargs.temperature": 0, "model_kwargs.num_retries": 0}


@contextlib.contextmanager
def forcing(server, schema_of, demand):
    """The port of the proxy, and the agent's original requests."""
    asked = []

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(copy.deepcopy(body))
            schema_of(body["tools"][0])["properties"]["command"] = {"const": COMMANDS[len(asked) - 1]}
            status, headers, reply = server.ask("POST", self.path, json.dumps({**body, **demand}))
            self.send_response(status)
            self.send_header("Content-Type", headers["Content-Type"])
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Proxy) as proxy:
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        try:
            yield proxy.server_port, asked
        finally:
            proxy.shutdown()
            thread.join()


def run_agent(folder, repository, model, kind, address):
    """The agent's record of its run."""
    settings = {**CALM, "model_kwargs.api_base": address}
    command = [sys.executable, "-m", "minisweagent.run.mini", "-m", model, "--model-class", kind, "-t", "Mend add() in sums.py.", "-y", "--exit-immediately"]
    command += ["-o", f"{folder}/run.json", "-c", "mini.yaml", *(word for name, value in settings.items() for word in ("-c", f"model.{name}={value}"))]
    home = {"HOME": str(folder), "MSWEA_GLOBAL_CONFIG_DIR": f"{folder}/settings", "MSWEA_CONFIGURED": "true", "MSWEA_SILENT_STARTUP": "1"}
    done = subprocess.run(command, cwd=repository, env={**os.environ, **home}, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, (done.stdout, done.stderr)
    with open(f"{folder}/run.json") as file:
        return json.load(file)


@pytest.mark.parametrize("way", WAYS)
def test_a_file_is_mended(server, tmp_path, way):
    model, version, kind, schema_of, demand = WAYS[way]
    repository = tmp_path / "repository"
    repository.mkdir()
    (repository / "sums.py").write_text(PROGRAM)
    with forcing(server, schema_of, demand) as (port, asked):
        noted = run_agent(tmp_path, repository, model, kind, f"http://127.0.0.1:{port}{version}")
    assert (repository / "sums.py").read_text() == PROGRAM.replace("-", "+")
    assert noted["info"]["exit_status"] == "Submitted" and noted["info"]["model_stats"]["api_calls"] == len(COMMANDS)
    actions = [action["command"] for message in noted["messages"] for action in message.get("extra", {}).get("actions", [])]
    assert actions == COMMANDS
    assert len(asked) == len(COMMANDS) and "it works" in json.dumps(asked[-1]), "the results went back to the model"


def test_nothing_else_than_this_machine_is_reached():
    """Every program of these tests that tries more fails like this one."""
    asked = [sys.executable, "-c", "import contextlib, socket\nwith contextlib.suppress(OSError): socket.create_connection(('192.0.2.1', 80), 1)"]
    done = subprocess.run(asked, capture_output=True, text=True)
    assert done.returncode == 86 and "192.0.2.1" in done.stderr
