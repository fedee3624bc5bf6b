# SPDX-License-Identifier: Apache-2.0
"""Attention by PyTorch for the shapes of kernel_times. Prints a line of JSON for each measurement.

peers.py [WORD]   only measurements whose name begins so
"""

import json
import statistics
import sys

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


def times(run):
    run()
    torch.cuda.synchronize()
    all_times = []
    while len(all_times) < 5 or (sum(all_times) < 150 and len(all_times) < 200):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        end.synchronize()
        all_times.append(begin.elapsed_time(end))
    return all_times


def report(name, backend, run, operations=0, moved=0):
    if not name.startswith(sys.argv[1] if len(sys.argv) > 1 else ""):
        return
    try:
        with torch.no_grad(), sdpa_kernel(backend):
            all_times = times(run)
    except (RuntimeError, torch.OutOfMemoryError) as error:
        print(json.dumps({"name": name, "error": str(error).splitlines()[0]}), flush=True)
        return
    seconds = statistics.median(all_times) / 1e3
    record = {"name": name, "us": round(seconds * 1e6, 2), "least_us": round(min(all_times) * 1e3, 2), "most_us": round(max(all_times) * 1e3, 2)}
    print(json.dumps({**record, "runs": len(all_times), "tflops": round(operations / seconds / 1e12, 1), "gb_s": round(moved / seconds / 1e9, 1)}), flush=True)


def tensors(rows, queries, keys, heads, kv_heads, dim):
    make = lambda h, n: torch.randn(rows, h, n, dim, device="cuda", dtype=torch.bfloat16)
    return make(heads, queries), make(kv_heads, keys), make(kv_heads, keys)


def main():
    attend = torch.nn.functional.scaled_dot_product_attention
    backends = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION}
    print(json.dumps({"torch": torch.__version__, "card": torch.cuda.get_device_name()}), flush=True)
    for tokens, heads, kv_heads, dim in [(4096, 32, 8, 128), (32768, 32, 8, 128), (32768, 32, 8, 64), (32768, 16, 8, 256)]:
        q, k, v = tensors(1, tokens, tokens, heads, kv_heads, dim)
        operations = 4 * heads * dim * tokens * (tokens + 1) / 2
        for name, backend in backends.items():
            report(f"prefill {tokens} heads {heads}/{kv_heads} d {dim} bf16 {name}", backend,
                   lambda: attend(q, k, v, is_causal=True, enable_gqa=True), operations=operations)
    for rows in (1, 8, 24):
        for entries in (1024, 32768, 131072):
            q, k, v = tensors(rows, 1, entries, 32, 8, 128)
            for name, backend in backends.items():
                report(f"decode {entries} batch {rows} bf16 {name}", backend, lambda: attend(q, k, v, enable_gqa=True), moved=2 * k.numel() * 2)
    a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    report("product 8192 bf16", SDPBackend.MATH, lambda: a @ b, operations=2 * 8192**3)


main()
