// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace winnow::hub {

/// Kinds of checksums that hubs use.
enum class Checksum {
  sha256,    ///< SHA-256 of the bytes, 64 digits, for large files
  git_blob,  ///< Git's SHA-1 of `blob`, the size and the bytes, 40 digits
};

/// Checksum of a file in hexadecimal digits. `on_read` gets the number of bytes read so far. Throws InputError for a
/// file that cannot be read, and what `on_read` throws.
std::string checksum_of(const std::string& path, Checksum kind, const std::function<void(std::size_t)>& on_read);

}  // namespace winnow::hub
