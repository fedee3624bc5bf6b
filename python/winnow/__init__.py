# SPDX-License-Identifier: Apache-2.0
"""Language models on long inputs, keeping only the KV-cache entries that matter.

    model = winnow.Model.load("model.gguf")
    with winnow.Session(model) as session:
        [[cache]] = session.prefill(text, ["Who is speaking?"], ("ada-snapkv", "10%"))
        for token in winnow.generate(cache, max_tokens=60):
            print(token.text, end="", flush=True)
"""

from winnow import _libraries

_libraries.load()

from winnow._core import (  # noqa: E402
    AddedDocument,
    BudgetError,
    Cache,
    CacheOptions,
    CacheStats,
    Document,
    DocumentDamage,
    DocumentInfo,
    DocumentStore,
    Error,
    InputError,
    Interrupted,
    Layer,
    MemoryUse,
    MethodInfo,
    Model,
    ModelError,
    ModelInfo,
    OptionInfo,
    OutOfMemoryError,
    PartInfo,
    Session,
    StoreError,
    UnknownDocument,
    UsageError,
    __version__,
    ask,
    canonical,
    describe_method,
    list_ask_methods,
    list_methods,
    list_tasks,
    list_wrappers,
)
from winnow._evaluate import evaluate, frame  # noqa: E402
from winnow._method import Option, method  # noqa: E402
from winnow._stream import Answer, Stream, Token, answer, generate  # noqa: E402

__all__ = [
    "AddedDocument",
    "Answer",
    "BudgetError",
    "Cache",
    "CacheOptions",
    "CacheStats",
    "Document",
    "DocumentDamage",
    "DocumentInfo",
    "DocumentStore",
    "Error",
    "InputError",
    "Interrupted",
    "Layer",
    "MemoryUse",
    "MethodInfo",
    "Model",
    "ModelError",
    "ModelInfo",
    "Option",
    "OptionInfo",
    "OutOfMemoryError",
    "PartInfo",
    "Session",
    "StoreError",
    "Stream",
    "Token",
    "UnknownDocument",
    "UsageError",
    "__version__",
    "answer",
    "ask",
    "canonical",
    "describe_method",
    "evaluate",
    "frame",
    "generate",
    "list_ask_methods",
    "list_methods",
    "list_tasks",
    "list_wrappers",
    "method",
]
