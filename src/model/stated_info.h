// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "model/gguf_header.h"
#include "winnow/describe.h"

namespace winnow::model {

/// What a GGUF's header says of a model by the keys that most architectures have, whether or not winnow knows the
/// architecture, and however wrong the rest is. Throws ModelError where there is no header to read.
ModelDescription stated_info(const std::string& path);

/// Adds a file, or a part of one, to what is known of the model's files.
void add_file(const GgufHeader& header, std::size_t bytes, ModelDescription& to);

}  // namespace winnow::model
