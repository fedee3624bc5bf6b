// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <string>

#include "base/text_input.h"

namespace winnow {

/// The lines of a text, read byte by byte, so that a long line is never in memory as a whole. Move-only, but not while
/// a line is being read.
class TextLines {
 public:
  /// Reads from the current position.
  explicit TextLines(TextInput input) : input_(std::move(input)) {}

  /// Goes to the next line that is not empty, skipping the rest of this one; false at the end. All reading functions
  /// throw like TextInput::read().
  bool next();
  /// The unread bytes of this line.
  std::string rest();

  /// Number of this line, from 1.
  int number() const { return number_; }
  /// Offset of this line's first byte.
  std::size_t offset() const { return offset_; }
  /// True if the line, read to its end, has a line feed.
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
    /// True at the end of the line, whatever `end` is.
    bool operator==(const Iterator& /*end*/) const { return lines_->is_at_end(); }

   private:
    friend class TextLines;
    explicit Iterator(TextLines& lines) : lines_(&lines) {}
    TextLines* lines_;
  };
  Iterator begin() { return Iterator(*this); }
  Iterator end() { return Iterator(*this); }

 private:
  /// True before a line feed or the end of the text.
  bool is_at_end();
  /// Skips this line; returns false if no other can follow.
  bool skip_rest();
  bool fill();

  TextInput input_;
  std::array<char, 1 << 16> buffer_{};
  std::size_t at_ = 0;      ///< index into the buffer
  std::size_t filled_ = 0;  ///< bytes in the buffer
  std::size_t before_ = 0;  ///< bytes of the text before those in the buffer
  std::size_t offset_ = 0;
  int number_ = 0;
  bool ended_ = false;
  bool over_ = false;  ///< end of the text reached
};

}  // namespace winnow
