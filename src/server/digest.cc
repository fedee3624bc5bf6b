// SPDX-License-Identifier: Apache-2.0
#include "server/digest.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <spdlog/fmt/fmt.h>

#include <array>

namespace winnow::server {

void prepare_digests() { OPENSSL_init_crypto(OPENSSL_INIT_LOAD_CONFIG, nullptr); }

std::string digest_of(std::string_view text) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> hash{};
  SHA256(reinterpret_cast<const unsigned char*>(text.data()), text.size(), hash.data());
  std::string out;
  for (const unsigned byte : hash) out += fmt::format("{:02x}", byte);
  return out;
}

}  // namespace winnow::server
