// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model/gguf_header.h"

namespace winnow::model {

/// Checks a GGUF header for everything on which ggml would abort: names, types of the keys that winnow uses, tensor
/// shapes and offsets within a file of `file_bytes`. Throws ModelError with `path`, the fault and the numbers.
void check_gguf(const GgufHeader& header, std::uint64_t file_bytes, const std::string& path);

/// Checks the model's keys for everything on which libllama would abort or compute nonsense: a supported language
/// model, finite hyper-parameters, the vocabulary's invariants. Throws ModelError.
void check_model_keys(const GgufHeader& header, const std::string& path);

}  // namespace winnow::model
