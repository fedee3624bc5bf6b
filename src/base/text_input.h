// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>

namespace winnow {

/// A text that is read once, from front to back: a file, a pipe, a terminal. Of another kind of file, such as a PDF
/// document, nothing is read: why_no_text() says what it is. Move-only.
class TextInput {
 public:
  /// `-` is stdin. A named pipe is waited for; `stop` is asked meanwhile. Throws InputError: missing, unreadable, a
  /// folder, a device without an end.
  explicit TextInput(const std::string& path, std::function<bool()> stop = {});
  /// Takes an open descriptor over, of which the caller knows what it is.
  TextInput(int fd, std::string name);
  TextInput(TextInput&& other) noexcept;
  TextInput& operator=(TextInput&&) = delete;
  ~TextInput();

  /// Some of the next bytes into `out`; how many, 0 at the end. Throws InputError when they cannot be read, Interrupted
  /// when stop() says so, and InputError for what begins as no text does.
  std::size_t read(std::span<char> out);
  /// All bytes that are left.
  std::string read_all();

  /// What messages call it.
  const std::string& name() const { return name_; }
  /// Whether a descriptor is of the same file.
  bool is_same_file(int fd) const;

 private:
  void check() const;
  /// Their number. Looks at the first ones.
  std::size_t checked(std::span<const char> bytes);

  std::string name_;
  std::function<bool()> stop_;
  int fd_;
  bool begun_;  ///< whether the first bytes have been looked at
};

}  // namespace winnow
