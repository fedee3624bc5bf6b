# SPDX-License-Identifier: Apache-2.0
"""Models of a hub. Each case is a process, because the cache's folder is fixed at its first use."""

import os
import pathlib
import signal
import subprocess
import sys

import pytest

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "hub"))

from fake_hub import Hub, sha256  # noqa: E402

PATIENCE = 120


@pytest.fixture
def hub(path):
    hub = Hub()
    hub.model = pathlib.Path(path).read_bytes()
    hub.put("some/model", {"tiny-Q4_K_M.gguf": hub.model})
    yield hub
    hub.stop()


def python(hub, folder, code):
    environment = {**os.environ, "HF_ENDPOINT": hub.address, "HF_HUB_CACHE": str(folder / "cache")}
    for name in ("MODEL_ENDPOINT", "HF_TOKEN", "LLAMA_CACHE"):
        environment.pop(name, None)
    return subprocess.Popen([sys.executable, "-c", f"import winnow\n{code}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)


def said(process):
    out, errors = process.communicate(timeout=PATIENCE)
    return process.returncode, out.strip(), errors


def test_a_model_is_downloaded_once(hub, tmp_path):
    load = "print(winnow.Model.load(hf='some/model:q4_k_m').info.path)"
    code, out, errors = said(python(hub, tmp_path, load))
    assert code == 0, errors
    assert pathlib.Path(out).read_bytes() == hub.model and out.startswith(str(tmp_path / "cache"))
    hub.stop()
    assert said(python(hub, tmp_path, load.replace(")", ", offline=True)", 1)))[1] == out


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("", "UsageError"),
        ("'x.gguf', hf='some/model'", "UsageError"),
        ("hf='model'", "UsageError"),
        ("hf='some/model:Q8_0'", "ModelError"),
        ("hf='some/model', offline=True", "ModelError"),
    ],
)
def test_what_cannot_be_had_is_an_exception(hub, tmp_path, arguments, error):
    code, out, errors = said(python(hub, tmp_path, f"try: winnow.Model.load({arguments})\nexcept winnow.{error} as e: print(e)"))
    assert code == 0 and out, errors


def test_ctrl_c_ends_a_download_which_goes_on_later(hub, tmp_path):
    half = len(hub.model) // 2
    hub.cuts = [half]
    hub.go_on.clear()
    load = "print('begin', flush=True)\ntry: winnow.Model.load(hf='some/model')\nexcept KeyboardInterrupt: print('interrupted')"
    process = python(hub, tmp_path, load)
    assert hub.reached.wait(PATIENCE)
    process.send_signal(signal.SIGINT)
    hub.go_on.set()  # the handler runs when more data arrives
    assert said(process)[1] == "begin\ninterrupted"
    part = tmp_path / f"cache/models--some--model/blobs/{sha256(hub.model)}.downloadInProgress"
    have = part.stat().st_size
    assert have > 0
    assert said(python(hub, tmp_path, "winnow.Model.load(hf='some/model')"))[0] == 0
    assert hub.downloads()[-1][1] == have
