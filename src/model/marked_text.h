// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace winnow::model {

/// A text with stretches of input, in which names of control tokens are plain text.
struct MarkedText {
  struct Stretch {
    std::size_t begin = 0;  ///< byte of the text
    std::size_t end = 0;    ///< after the last byte
    bool operator==(const Stretch&) const = default;
  };
  std::string text;
  std::vector<Stretch> input;  ///< ascending, not empty, not adjacent

  void append_template(std::string_view more) { text += more; }
  void append_input(std::string_view more) {
    if (more.empty()) return;
    const std::size_t begin = text.size();
    text += more;
    if (!input.empty() && input.back().end == begin) {
      input.back().end = text.size();
    } else {
      input.push_back({begin, text.size()});
    }
  }
};

}  // namespace winnow::model
