// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <stdexcept>
#include <string>

#include "winnow/export.h"

namespace winnow {

/// Base of all exceptions of winnow. what() is one sentence for users, with the relevant numbers.
class WINNOW_EXPORT Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// An impossible request: an unknown method, a budget of 0, a wrong option. The command exits with 2.
class WINNOW_EXPORT UsageError : public Error {
 public:
  using Error::Error;
};

/// A model file that cannot be used: missing, unreadable, truncated, not a GGUF, inconsistent, or of an unsupported
/// architecture.
class WINNOW_EXPORT ModelError : public Error {
 public:
  using Error::Error;
};

/// An input or output other than the model: an empty prompt, an unreadable file, a full disk, a closed stream.
class WINNOW_EXPORT InputError : public Error {
 public:
  using Error::Error;
};

/// Memory that could not be allocated.
class WINNOW_EXPORT MemoryError : public Error {
 public:
  MemoryError(const std::string& what, std::size_t bytes) : Error(what), bytes_(bytes) {}

  /// Bytes that were requested.
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
};

/// The work was stopped (Session::on_stop()). Everything that existed before the call is intact.
class WINNOW_EXPORT Interrupted : public Error {
 public:
  using Error::Error;
};

}  // namespace winnow
