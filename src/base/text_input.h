// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace winnow {

/// A text that is read once, sequentially: a file, a pipe, a terminal. Refuses other kinds of files, such as PDF
/// documents, as why_no_text() says. Move-only.
class TextInput {
 public:
  /// `-` is stdin. Waits for a named pipe, and polls `stop` meanwhile. Throws InputError for a path that is missing or
  /// unreadable, a folder, or a device without an end.
  explicit TextInput(const std::string& path, std::function<bool()> stop = {});
  /// Takes over an open descriptor of a kind known to the caller.
  TextInput(int fd, std::string name);
  TextInput(TextInput&& other) noexcept;
  TextInput& operator=(TextInput&&) = delete;
  ~TextInput();

  /// Reads some of the next bytes into `out`; returns their number, 0 at the end. Throws InputError if reading fails or
  /// the first bytes are not text, Interrupted if stop() returns true.
  std::size_t read(std::span<char> out);
  /// Reads the remaining bytes.
  std::string read_all();

  /// Name of the text in messages.
  const std::string& name() const { return name_; }
  /// True if a descriptor refers to the same file.
  bool is_same_file(int fd) const;

 private:
  void check() const;
  /// Returns the number of bytes, after a check of the first ones.
  std::size_t checked(std::span<const char> bytes);

  std::string name_;
  std::function<bool()> stop_;
  int fd_;
  bool begun_;  ///< the first bytes have been checked
};

}  // namespace winnow
