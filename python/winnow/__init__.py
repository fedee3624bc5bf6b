# SPDX-License-Identifier: Apache-2.0
"""Language models on long inputs, keeping only the KV-cache entries that matter.

    model = winnow.Model.load("model.gguf")
    with winnow.Session(model) as session:
        [[cache]] = session.prefill(text, ["Who is speaking?"], ("ada-snapkv", "10%"))
        for token in winnow.generate(cache, max_tokens=60):
            print(token.text, end="", flush=True)
"""

from winnow._core import (
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
from winnow._evaluate import evaluate, frame
from winnow._method import Option, method
from winnow._pipeline import Pipeline, pipeline
from winnow._stream import Answer, Stream, Token, answer, generate

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
    "Pipeline",
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
    "pipeline",
]
