// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "winnow/describe.h"

namespace winnow::model {

/// What a GGUF's header says of a model by the keys that most architectures have, whether or not winnow knows the
/// architecture, and however wrong the rest is. Throws ModelError where there is no header to read.
ModelDescription stated_info(const std::string& path);

}  // namespace winnow::model
