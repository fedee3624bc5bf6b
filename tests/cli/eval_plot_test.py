# SPDX-License-Identifier: Apache-2.0
"""`winnow eval plot`: figures and places of points, recomputed here from made-up records."""

import json
import math
import os
import re
import shutil
import subprocess
import xml.etree.ElementTree

import pytest
from program import PATIENCE, WINNOW, check_refusal

pytestmark = pytest.mark.skipif(not shutil.which("gnuplot"), reason="gnuplot is not installed")

EVIL = "</svg><script>alert('1')</script>&\"<b>"
MIB = 1 << 20
FULL = ("full", None, "f16")
METHODS = {FULL: (16, 0.0, 100), ("snapkv", "64", "f16"): (1, 0.5, 110), ("snapkv", "256", "f16"): (4, 0.05, 120), ("tova", "64", "q8_0"): (0.6, 0.3, 250)}
SPREAD = (0.8, 1.0, 1.2)  # of the samples around these figures: MiB, KL, milliseconds


def record(method, sample, mib, kl, ms, **others):
    spec, budget, kv_type = method
    return {"task": "fidelity", "id": f"{sample}", "spec": spec, "budget": budget, "kv_type": kv_type, "protocol": "question-aware", "model_hash": "00ab",
            "prompt_hash": "1", "answer": "a", "score": 1 - kl, "values": {"kl": kl}, "prompt_tokens": 3000, "entries": 64.0, "bytes_held": int(mib * MIB),
            "timings": {"prefill_ms": ms, "decode_ms": 1}, "group": f"{method}{sample}", "group_size": 1, "version": "0", **others}  # fmt: skip


def made(**others):
    return [record(method, i, mib, kl * spread, ms * spread, **others) for i, spread in enumerate(SPREAD) for method, (mib, kl, ms) in METHODS.items()]


def write(folder, records):
    os.makedirs(folder)
    with open(f"{folder}/records.jsonl", "w") as file:
        for one in records:
            print(json.dumps(one), file=file)
    return f"{folder}"


def plot(folder, *options):
    result = subprocess.run([WINNOW, "eval", "plot", folder, "-o", f"{folder}/plot.svg", *options], capture_output=True, text=True, timeout=PATIENCE)
    assert result.returncode == 0, result.stderr
    with open(f"{folder}/plot.svg") as file:
        return file.read(), result.stderr


def refused(folder, code, *parts, options=("--quality", "kl"), out=None):
    command = [WINNOW, "eval", "plot", folder, "-o", out or f"{folder}/plot.svg", *options]
    check_refusal(subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE), code, *parts)


def figures(svg):
    """Cost, quality and its interval, by method and budget, from the description."""
    listed = re.search("<desc>.*?, over .*?(?:MiB|cache&#39;s)[.] (.*?)[.]</desc>", svg).group(1)
    number = r"([\d.e+-]*\d)"
    found = [re.fullmatch(rf"(.+): {number}, {number}(?: \({number} to {number}\))?", one).groups() for one in listed.split("; ")]
    return {name: [float(one) for one in of if one] for name, *of in found}


def marks(svg):
    """Places of the marks above the numbers of the x axis, below which is the legend."""
    below = min(float(y) for y in re.findall(r"translate\([\d.]+,([\d.]+)\)\"[^>]*text-anchor=\"middle\"\s*><text> ?[\d.]+</text>", svg))
    found = re.findall(r"<use xlink:href='#\w+' transform='translate\(([\d.]+),([\d.]+)\)", svg)
    return [(float(x), float(y)) for x, y in found if float(y) < below]


def tics(svg, anchor):
    """Places of an axis's numbers."""
    found = re.findall(rf"translate\(([\d.]+),([\d.]+)\)\"[^>]*text-anchor=\"{anchor}\"\s*><text> ?([\d.]+)</text>", svg)
    return {float(text): float(x if anchor == "middle" else y) for x, y, text in found}


def expected_place(value, places, scale):
    """Interpolates between an axis's outermost numbers."""
    low, high = min(places), max(places)
    share = (scale(value) - scale(low)) / (scale(high) - scale(low))
    return places[low] + share * (places[high] - places[low])


def test_quality_over_bytes(tmp_path):
    svg, errors = plot(write(tmp_path / "run", made()), "--quality", "kl", "--over", "bytes")
    assert not errors
    found = figures(svg)
    assert found["full"] == [16, 0, 0, 0]
    for name, mib, kl in (("snapkv @ 64", 1, 0.5), ("snapkv @ 256", 4, 0.05), ("tova, q8_0 @ 64", 0.6, 0.3)):
        assert found[name][:2] == pytest.approx([mib, kl], rel=1e-3)
        low, high = found[name][2:]
        assert kl * SPREAD[0] <= low * 1.001 < kl < high <= kl * SPREAD[-1] * 1.001
    assert len(found) == len(METHODS) and "cache after prefill, MiB" in svg and "KL to full, nats" in svg and "3 samples" in svg


def test_points_are_where_the_axes_say(tmp_path):
    svg, _ = plot(write(tmp_path / "run", made()), "--quality", "kl")
    drawn = marks(svg)
    across, up = tics(svg, "middle"), tics(svg, "end")
    assert {1, 2} <= across.keys() and {0.05, 0.1, 0.5} <= up.keys(), (across, up)
    shift = 15 / 3  # a number's baseline is below its tic
    for mib, kl in ((1, 0.5), (4, 0.05), (0.6, 0.3)):
        x, y = expected_place(mib, across, math.log), expected_place(kl, up, math.log) - shift
        assert min(math.hypot(x - at_x, y - at_y) for at_x, at_y in drawn) < 1, (mib, kl, drawn)
    assert len(drawn) == 3, "a logarithmic axis has no place for the full cache's 0"


def test_quality_over_time(tmp_path):
    svg, _ = plot(write(tmp_path / "run", made()), "--over", "time")
    found = figures(svg)
    assert found["full"][:2] == [1, 100]
    assert found["snapkv @ 64"][:2] == pytest.approx([1.1, 50]) and found["snapkv @ 256"][:2] == pytest.approx([1.2, 95]) and found["tova, q8_0 @ 64"][:2] == pytest.approx([2.5, 70])
    words = re.findall("<text>([^<]*)</text>", svg)
    assert "agreement, %" in {word.strip() for word in words} and "score, %" in plot(write(tmp_path / "score", made(values={})), "--over", "time")[0]
    assert words.count("64") == 2 and words.count("256") == 1, "each point has its budget"
    assert {"snapkv", "tova", "f16", "q8_0", "full cache"} <= {word.strip() for word in words}, words


def test_the_same_records_give_the_same_small_file_in_light_and_dark(tmp_path):
    names = ("snapkv", "tova", "ems", "h2o", "streaming-llm", "quest", "cam", "ahakv", "nacl")
    records = [record((name, f"{kib}KiB", kv_type), i, kib / 1024, 0.1 * (1 + place) / kib * 1000, 100) for i in range(3) for place, name in enumerate(names) for kib in (700, 1463, 2925, 5850) for kv_type in ("f16", "q8_0", "q4_0")]
    svg, _ = plot(write(tmp_path / "run", records), "--quality", "kl")
    assert plot(str(tmp_path / "run"), "--quality", "kl")[0] == svg
    assert len(svg.encode()) < 60_000
    xml.etree.ElementTree.fromstring(svg)
    assert "prefers-color-scheme: dark" in svg and 'fill="var(--paper)"' in svg and "Gnuplot" not in svg
    assert "1 other method" in svg, "the ninth is grey"


def test_names_are_escaped(tmp_path):
    records = [record((spec, "64", EVIL), i, 1, 0.5, 100, task=EVIL) for spec in (EVIL, "tova") for i in range(2)]
    svg, _ = plot(write(tmp_path / "run", records), "--quality", "kl")
    tree = xml.etree.ElementTree.fromstring(svg)
    assert not [element for element in tree.iter() if element.tag.endswith("script")]


def test_all_methods_have_the_same_samples(tmp_path):
    """Another sample of one method changes nothing, and is reported."""
    more = [*made(), record(("snapkv", "64", "f16"), "more", 100, 100, 100)]
    svg, errors = plot(write(tmp_path / "more", more), "--quality", "kl")
    assert svg == plot(write(tmp_path / "run", made()), "--quality", "kl")[0] and "1 sample is left out" in errors
    alone = [*made(), record(("ems", "64", "f16"), "other", 1, 1, 1)]
    refused(write(tmp_path / "alone", alone), 1, "no sample was measured with all 5 methods and budgets; ems with a budget of 64 has the fewest (1)")


def test_what_cannot_be_compared_is_refused(tmp_path):
    refused(write(tmp_path / "protocols", made() + made(protocol="question-agnostic")), 1, "2 protocols", "--protocol")
    svg, _ = plot(f"{tmp_path}/protocols", "--protocol", "question-agnostic", "--quality", "kl")
    assert "3 samples" in svg
    refused(write(tmp_path / "models", made() + made(model_hash="00cd")), 1, "2 models (00ab, 00cd)")
    refused(write(tmp_path / "shared", made(group_size=2)), 1, "--alone", options=("--over", "time"))
    refused(write(tmp_path / "no-full", made()[1:2]), 1, "no records of full", options=("--over", "time"))
    refused(f"{tmp_path}/shared", 1, "no record has the value perplexity", options=("--quality", "perplexity"))
    refused(f"{tmp_path}/shared", 1, "no record of niah has a score", options=("--task", "niah"))


def test_broken_records_and_files_of_mine(tmp_path):
    folder = write(tmp_path / "run", made())
    with open(f"{folder}/records.jsonl") as file:
        whole = file.read()
    for broken, reason in (('{"task": "fidelity"}\n', "line 2 is not a record"), ("nonsense\n", "line 2 is not a record")):
        with open(f"{folder}/records.jsonl", "w") as file:
            file.write(whole[: whole.index("\n") + 1] + broken)
        refused(folder, 1, "records.jsonl", reason)
    refused(write(tmp_path / "name", made()), 2, "give a name that ends in .svg", out=f"{tmp_path}/plot.png")
    mine = tmp_path / "mine.svg"
    mine.write_text("<?xml of mine")
    refused(f"{tmp_path}/name", 1, "it exists and is not", out=str(mine))
    assert mine.read_text() == "<?xml of mine"
