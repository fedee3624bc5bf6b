# SPDX-License-Identifier: Apache-2.0
"""quiet.py ARGUMENTS: runs Python with these arguments. It and the programs that it starts can reach only this machine,
and their telemetry is off."""

import os
import pathlib
import sys

os.environ |= {
    "PYTHONPATH": str(pathlib.Path(__file__).parent),  # for sitecustomize.py
    "DO_NOT_TRACK": "1",
    "HF_HUB_OFFLINE": "1",
    "LANGSMITH_TRACING": "false",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENAI_AGENTS_DISABLE_TRACING": "1",
}
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
