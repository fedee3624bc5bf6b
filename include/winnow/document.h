// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "winnow/model.h"

namespace winnow {

/// A document to be read once and asked about many times.
struct DocumentText {
  std::string text;
  ControlTokens control = ControlTokens::as_text;
  std::vector<Token> tokens = {};  ///< alternative to `text`: all tokens, with BOS; empty: those of `text`
};

}  // namespace winnow
