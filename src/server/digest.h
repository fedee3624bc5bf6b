// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace winnow::server {

/// Initializes OpenSSL for digest_of(). Called before threads begin: if a thread that ends is the first to use OpenSSL,
/// its error state is never freed.
void prepare_digests();

/// The SHA-256 of a text, as 64 hexadecimal digits.
std::string digest_of(std::string_view text);

}  // namespace winnow::server
