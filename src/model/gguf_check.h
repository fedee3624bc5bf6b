// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/gguf_header.h"

namespace winnow::model {

/// Checks a GGUF's header for everything that ggml would otherwise abort on: names, types of what is relied on, tensor
/// shapes and places within a file of so many bytes. Throws ModelError: `path`, what, the numbers.
void check_gguf(const GgufHeader& header, std::uint64_t file_bytes, const std::string& path);

/// Checks what a model's header says besides, which libllama would abort on, or compute nonsense from: that it is a
/// language model of an architecture that winnow knows, hyper-parameters that are no numbers, the vocabulary's
/// invariants. Throws ModelError.
void check_model_keys(const GgufHeader& header, const std::string& path);

}  // namespace winnow::model
