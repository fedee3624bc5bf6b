// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string>

#include "base/text_input.h"

namespace winnow {

/// The lines of a text, whose bytes are handed out as they are read: a long line is nowhere in memory as a whole.
/// Move-only, and not while a line is being read.
class TextLines {
 public:
  /// Reads from the descriptor's place on.
  explicit TextLines(TextInput input) : input_(std::move(input)) {}

  /// Goes to the next line that is not empty, past what is left of this one; false at the end. All that read throw what
  /// TextInput::read() throws.
  bool next();
  /// The bytes of this line that were not read yet.
  std::string rest();

  /// Of this line, from 1.
  int number() const { return number_; }
  /// Where this line begins.
  std::size_t offset() const { return offset_; }
  /// Whether the line that was read to its end has a line feed there.
  bool is_ended() const { return ended_; }
  const TextInput& input() const { return input_; }

  /// Reads the bytes of this line once.
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = char;
    using difference_type = std::ptrdiff_t;
    using pointer = const char*;
    using reference = const char&;

    reference operator*() const { return lines_->buffer_[lines_->at_]; }
    Iterator& operator++() {
      ++lines_->at_;
      return *this;
    }
    /// All that matters is whether the line goes on.
    bool operator==(const Iterator& /*end*/) const { return lines_->is_at_end(); }

   private:
    friend class TextLines;
    explicit Iterator(TextLines& lines) : lines_(&lines) {}
    TextLines* lines_;
  };
  Iterator begin() { return Iterator(*this); }
  Iterator end() { return Iterator(*this); }

 private:
  /// Whether a line feed or the end of the text comes next.
  bool is_at_end();
  /// Goes after this line; whether there may be another.
  bool skip_rest();
  bool fill();

  TextInput input_;
  std::array<char, 1 << 16> buffer_{};
  std::size_t at_ = 0;      ///< in the buffer
  std::size_t filled_ = 0;  ///< bytes of the buffer
  std::size_t before_ = 0;  ///< bytes of the text that were in the buffer earlier
  std::size_t offset_ = 0;
  int number_ = 0;
  bool ended_ = false;
  bool over_ = false;  ///< there is nothing more to read
};

}  // namespace winnow
