// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>
#include <gguf.h>

#include "support/tiny_gguf.h"

namespace winnow::test {

/// Adds the tensors of a tiny model, filled with random values, to a GGUF. They live in `context`.
void add_tiny_tensors(const TinyModel& model, gguf_context* gguf, ggml_context* context);

}  // namespace winnow::test
