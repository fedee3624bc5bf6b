# SPDX-License-Identifier: Apache-2.0
"""The build of ggml's kernels that fits this processor, where the package brings several.

A wheel that runs anywhere has lib/LEVEL/libggml-cpu.so.0 for some levels of x86-64, all under one SONAME. Whichever is loaded first is the one
that the other libraries then find. Everything of winnow's own chooses its kernels at run time by itself.
"""

import ctypes
import os
import pathlib

_FOLDER = pathlib.Path(__file__).parent / "lib"
_NAME = "libggml-cpu.so.0"

# From the best to the least: tools/ggml/levels.sh has the compiler's options. /proc/cpuinfo's names.
_AVX2 = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma"}
_AVX512 = _AVX2 | {"avx512f", "avx512cd", "avx512vl", "avx512dq", "avx512bw"}
_BF16 = _AVX512 | {"avx512_vnni", "avx512_vbmi", "avx512_bf16"}
LEVELS = {
    "amx": _BF16 | {"amx_tile", "amx_int8", "amx_bf16"},
    "avx512-bf16": _BF16,
    "avx512": _AVX512,
    "avx2": _AVX2,
    "sse42": set(),
}


def features():
    """The processor's features by Linux's names."""
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        for line in cpuinfo:
            if line.startswith(("flags", "Features")):
                return set(line.partition(":")[2].split())
    return set()


def best_level(has):
    """The name of the best level that needs nothing but these features."""
    return next(level for level, needs in LEVELS.items() if needs <= has)


def folder():
    """Where this processor's libggml-cpu lies; None: the package has only one, beside the other libraries."""
    if not any((_FOLDER / level).is_dir() for level in LEVELS):
        return None
    return _FOLDER / best_level(features())


def load():
    """Loads it for the whole process, before the extension is imported."""
    if (chosen := folder()) is not None:
        ctypes.CDLL(os.fspath(chosen / _NAME), mode=ctypes.RTLD_GLOBAL)
