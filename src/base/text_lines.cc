// SPDX-License-Identifier: Apache-2.0
#include "base/text_lines.h"

namespace winnow {

bool TextLines::fill() {
  if (at_ < filled_) return true;
  if (over_) return false;
  const std::size_t more = input_.read(buffer_);
  before_ += filled_;
  at_ = 0;
  filled_ = more;
  over_ = more == 0;
  return !over_;
}

bool TextLines::is_at_end() {
  const bool more = fill();
  ended_ = more && buffer_[at_] == '\n';
  return !more || ended_;
}

bool TextLines::skip_rest() {
  while (!is_at_end()) ++at_;
  if (ended_) ++at_;
  return ended_;
}

bool TextLines::next() {
  while (number_ == 0 || skip_rest()) {
    ++number_;
    offset_ = before_ + at_;
    if (!is_at_end()) return true;
    if (ended_) continue;
    --number_;  // nothing follows the last line feed
    return false;
  }
  return false;
}

std::string TextLines::rest() { return {begin(), end()}; }

}  // namespace winnow
