// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace winnow::hub {

/// The checksums by which a hub names the contents of files.
enum class Checksum {
  sha256,    ///< of the bytes: 64 digits, for large files
  git_blob,  ///< Git's own, a SHA-1 of `blob`, the size and the bytes: 40 digits
};

/// A file's checksum in hexadecimal digits. `on_read` gets the bytes that have been read, now and then. Throws
/// InputError for a file that cannot be read, and what `on_read` throws.
std::string checksum_of(const std::string& path, Checksum kind, const std::function<void(std::size_t)>& on_read);

}  // namespace winnow::hub
