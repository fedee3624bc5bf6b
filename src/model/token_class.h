// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "winnow/token_class.h"

namespace winnow::model {

/// Class of a token with this text, UTF-8 that may be cut anywhere; control tokens have an empty text.
TokenClass class_of(std::string_view text);

}  // namespace winnow::model
