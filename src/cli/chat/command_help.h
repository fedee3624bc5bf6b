// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cli/chat/line_reader.h"

namespace winnow::cli {

/// Help for chat commands that are being typed. Other lines need none.
class CommandHelp : public TypingHelp {
 public:
  std::vector<std::string> completions(std::string_view line) const override;
  bool is_path(std::string_view line) const override;
  std::string hint(std::string_view line) const override;
};

}  // namespace winnow::cli
