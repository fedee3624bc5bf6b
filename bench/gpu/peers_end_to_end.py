# SPDX-License-Identifier: Apache-2.0
"""transformers and kvpress with a model of random weights: reading prompts and decoding after them, as `winnow bench`
measures it. Prints a line of JSON for each measurement, with seconds of a prompt or of a decode step.

peers_end_to_end.py PEER [--prompts 8192,32768] [--depths 0,32768] [--batches 1] [--new 64] [--runs 3] [--budget 1024]

PEER: transformers (scaled_dot_product_attention, growing cache), compiled (the same with a static cache and
torch.compile; decodes only), or a press of kvpress: snapkv, ada-snapkv, h2o (ObservedAttention with eager attention).
"""

import argparse
import gc
import importlib.util
import json
import os
import statistics
import sys
import time
import types
from contextlib import nullcontext

os.environ.update(HF_HUB_OFFLINE="1", TQDM_DISABLE="1", HF_HUB_DISABLE_PROGRESS_BARS="1")

import torch
import transformers
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM, StaticCache

SHAPES = {  # as in bench/random_model.cc
    "llama-3.1-8b": dict(hidden_size=4096, intermediate_size=14336, num_hidden_layers=32, num_attention_heads=32, num_key_value_heads=8, vocab_size=128256),
    "tiny": dict(hidden_size=64, intermediate_size=128, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=288),
}
WARM_UP = 4096  # tokens


def presses():
    """Functions that make a press for a share of evicted entries. Parts of kvpress that are not used here need packages
    that bare machines lack; empty ones take their place."""
    for name, member in (("datasets", "load_dataset"), ("fire", "Fire")):
        if importlib.util.find_spec(name) is None:
            sys.modules[name] = types.ModuleType(name)
            setattr(sys.modules[name], member, None)
    from kvpress import AdaKVPress, ObservedAttentionPress, SnapKVPress

    return {"snapkv": lambda share: SnapKVPress(share, window_size=32), "ada-snapkv": lambda share: AdaKVPress(SnapKVPress(share, window_size=32)),
            "h2o": ObservedAttentionPress}  # fmt: skip


class Device:
    """A GPU, or the CPU for trials without one."""

    def __init__(self, name):
        self.name = name
        self.is_gpu = name != "cpu"
        self.card = torch.cuda.get_device_name() if self.is_gpu else "CPU"

    def seconds(self, work):
        self.wait()
        begin = time.perf_counter()
        work()
        self.wait()
        return time.perf_counter() - begin

    def wait(self):
        if self.is_gpu:
            torch.cuda.synchronize()

    def free(self):
        """Frees the memory of earlier measurements."""
        gc.collect()
        if self.is_gpu:
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()

    def peak_bytes(self):
        return torch.cuda.max_memory_allocated() if self.is_gpu else None


def random_model(shape, device, attention):
    config = LlamaConfig(**SHAPES[shape], max_position_embeddings=131072, tie_word_embeddings=False, attn_implementation=attention)
    torch.set_default_dtype(torch.bfloat16)
    with torch.device(device):
        return LlamaForCausalLM(config).eval()


class Peer:
    def __init__(self, options, device):
        self.options = options
        self.device = device
        self.press = None if options.peer in ("transformers", "compiled") else presses()[options.peer]
        self.model = random_model(options.shape, device.name, "eager" if options.peer == "h2o" else "sdpa")
        torch.manual_seed(1)
        self.ids = torch.randint(3, self.model.config.vocab_size, (1, 131072 + options.new), device=device.name)

    def read(self, tokens):
        """The cache of a prompt."""
        cache = DynamicCache()
        share = 1 - (self.options.budget + 0.5) / tokens  # presses round the number of kept entries down
        with self.press(share)(self.model) if self.press and share > 0 else nullcontext():
            self.model(self.ids[:, :tokens], past_key_values=cache, logits_to_keep=1)
        return cache

    def decode(self, cache, depth):
        """Appends tokens one by one to all sequences of a cache, which holds entries of `depth` tokens."""
        batch = cache.layers[0].keys.shape[0]
        for i in range(depth, depth + self.options.new):
            position = torch.tensor([i], device=self.device.name)
            self.model(self.ids[:, i : i + 1].expand(batch, 1), past_key_values=cache, cache_position=position, position_ids=position[None])

    def measure_reading(self, tokens):
        self.read(min(tokens, WARM_UP))
        times = [self.device.seconds(lambda: self.read(tokens)) for _ in range(self.options.runs)]
        self.report(times, n_prompt=tokens)

    def measure_decoding(self, depth, batch):
        cache = self.read(max(1, depth))  # decoding needs a token before it
        kept = cache.get_seq_length()
        if batch > 1:
            cache.batch_repeat_interleave(batch)
        times = []
        for _ in range(self.options.runs + 1):
            times.append(self.device.seconds(lambda: self.decode(cache, max(1, depth))) / self.options.new)
            cache.crop(kept)
        self.report(times[1:], n_gen=self.options.new, n_depth=depth, batch=batch)

    def report(self, times, n_prompt=0, n_gen=0, n_depth=0, batch=1):
        kv = self.options.peer if self.press else "full"
        engine = f"kvpress {kv}" if self.press else self.options.peer
        print(json.dumps({"engine": engine, "kv": kv, "budget": self.options.budget if self.press else None, "weight_type": "bf16",
                          "batch": batch, "n_prompt": n_prompt, "n_gen": n_gen, "n_depth": n_depth, "min_s": min(times), "median_s": statistics.median(times),
                          "runs": len(times), "peak_bytes": self.device.peak_bytes(), "card": self.device.card,
                          "version": f"torch {torch.__version__}, transformers {transformers.__version__}"}), flush=True)  # fmt: skip


class Compiled(Peer):
    """Decodes with a static cache, for which the model is compiled."""

    def __init__(self, options, device):
        super().__init__(options, device)
        self.eager = self.model.forward
        self.compiled = torch.compile(self.model.forward, mode="reduce-overhead", fullgraph=True)

    def measure_decoding(self, depth, batch):
        depth = max(1, depth)
        self.model.forward = self.eager
        read = self.read(depth)
        cache = StaticCache(self.model.config, max_cache_len=depth + self.options.new)
        where = {"cache_position": torch.arange(depth, device=self.device.name)}
        for i, layer in enumerate(read.layers):
            cache.update(layer.keys.repeat(batch, 1, 1, 1), layer.values.repeat(batch, 1, 1, 1), i, where)
        del read
        self.model.forward = self.compiled
        times = [self.device.seconds(lambda: self.decode(cache, depth)) / self.options.new for _ in range(self.options.runs + 1)]
        self.report(times[1:], n_gen=self.options.new, n_depth=depth if depth > 1 else 0, batch=batch)


def numbers(text):
    return [int(word) for word in text.split(",") if word]


def options_of(arguments):
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("peer", choices=["transformers", "compiled", "snapkv", "ada-snapkv", "h2o"])
    parser.add_argument("--prompts", type=numbers, default=[])
    parser.add_argument("--depths", type=numbers, default=[])
    parser.add_argument("--batches", type=numbers, default=[1])
    parser.add_argument("--new", type=int, default=64)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--budget", type=int, default=1024)
    parser.add_argument("--shape", choices=SHAPES, default="llama-3.1-8b")
    parser.add_argument("--device", default="cuda")
    return parser.parse_args(arguments)


@torch.no_grad()
def main():
    options = options_of(sys.argv[1:])
    device = Device(options.device)
    peer = (Compiled if options.peer == "compiled" else Peer)(options, device)
    tests = [(peer.measure_reading, [tokens]) for tokens in options.prompts]
    tests += [(peer.measure_decoding, [depth, batch]) for depth in options.depths for batch in options.batches]
    failed = 0
    for measure, arguments in tests:
        device.free()
        try:
            measure(*arguments)
        except (RuntimeError, ValueError, AssertionError) as error:  # such as a card whose memory is full
            failed = 1
            print(f"{options.peer}, {measure.__name__}{tuple(arguments)}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
    sys.exit(failed)


main()
