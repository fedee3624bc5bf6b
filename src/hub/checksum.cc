// SPDX-License-Identifier: Apache-2.0
#include "hub/checksum.h"

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <array>
#include <memory>
#include <new>
#include <span>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace winnow::hub {

namespace {

constexpr std::size_t kBufferBytes = std::size_t{1} << 20;

class Digest {
 public:
  explicit Digest(const EVP_MD* kind) : context_(EVP_MD_CTX_new(), EVP_MD_CTX_free) {
    if (context_ == nullptr || EVP_DigestInit_ex(context_.get(), kind, nullptr) != 1) throw std::bad_alloc();
  }

  void add(std::span<const std::byte> bytes) { EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()); }

  std::string digits() {
    std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
    unsigned size = 0;
    EVP_DigestFinal_ex(context_.get(), bytes.data(), &size);
    std::string out;
    for (const auto byte : std::span(bytes).first(size)) out += fmt::format("{:02x}", byte);
    return out;
  }

 private:
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context_;
};

}  // namespace

std::string checksum_of(const std::string& path, Checksum kind, const std::function<void(std::size_t)>& on_read) {
  const FileSource file(path);
  Digest digest(kind == Checksum::sha256 ? EVP_sha256() : EVP_sha1());
  if (kind == Checksum::git_blob) {
    const auto head = fmt::format("blob {}", file.size());
    digest.add(std::as_bytes(std::span(head.c_str(), head.size() + 1)));  // with its NUL
  }
  std::vector<std::byte> buffer(std::min(kBufferBytes, file.size()));
  for (std::size_t at = 0; at < file.size(); at += buffer.size()) {
    buffer.resize(std::min(kBufferBytes, file.size() - at));
    file.read(at, buffer);
    digest.add(buffer);
    on_read(at + buffer.size());
  }
  return digest.digits();
}

}  // namespace winnow::hub
