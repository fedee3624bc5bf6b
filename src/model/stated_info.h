// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "model/gguf_header.h"
#include "winnow/describe.h"

namespace winnow::model {

/// Description of a model from the common keys of its GGUF header, even if winnow does not know the architecture or the
/// rest is wrong. Throws ModelError if the header cannot be read.
ModelDescription stated_info(const std::string& path);

/// Adds a file, or a part, to the description of the model's files.
void add_file(const GgufHeader& header, std::size_t bytes, ModelDescription& to);

}  // namespace winnow::model
