// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/gguf_header.h"

namespace winnow::model {

/// Checks a GGUF's header for everything that ggml and libllama would otherwise abort on, or compute nonsense from:
/// names, the types of the keys that are relied on, hyper-parameters that are no numbers, tensor shapes and places
/// within a file of so many bytes, the vocabulary's invariants. Throws ModelError: `path`, what, the numbers.
void check_gguf(const GgufHeader& header, std::uint64_t file_bytes, const std::string& path);

}  // namespace winnow::model
