// SPDX-License-Identifier: Apache-2.0
#include "server/embeddings/answer.h"

#include <openssl/evp.h>
#include <spdlog/fmt/fmt.h>

#include <bit>
#include <cmath>
#include <numeric>

#include "server/openai/answer.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

constexpr std::size_t kBytesOfNumber = 16;  ///< the most bytes of a float and a comma, as fmt writes it

/// Keeps the first elements, and normalizes them to length 1.
void keep_first(std::vector<float>& vector, std::size_t dimensions) {
  if (dimensions == vector.size()) return;
  vector.resize(dimensions);
  const double length = std::sqrt(std::inner_product(vector.begin(), vector.end(), vector.begin(), 0.0));
  for (float& value : vector) value = length > 0 ? static_cast<float>(value / length) : 0;
}

std::string base64(const std::vector<float>& vector) {
  static_assert(std::endian::native == std::endian::little);
  const std::size_t bytes = vector.size() * sizeof(float);
  std::string out((bytes + 2) / 3 * 4 + 1, '\0');  // one more for the zero byte that OpenSSL writes
  const auto* const data = reinterpret_cast<const unsigned char*>(vector.data());
  out.resize(static_cast<std::size_t>(
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(out.data()), data, static_cast<int>(bytes))));
  return '"' + out + '"';
}

}  // namespace

EmbeddingAnswer::EmbeddingAnswer(std::string model, const EmbeddingRequest& request)
    : model_(std::move(model)), tokens_(request.tokens()), dimensions_(request.dimensions), format_(request.format) {}

std::size_t EmbeddingAnswer::bytes_of(const EmbeddingRequest& request) {
  return 2 * request.texts.size() * (100 + kBytesOfNumber * request.dimensions);
}

void EmbeddingAnswer::add(std::vector<float> vector) {
  keep_first(vector, dimensions_);
  const auto numbers = format_ == NumberFormat::base64 ? base64(vector) : fmt::format("[{}]", fmt::join(vector, ","));
  written_.push_back(fmt::format(R"({{"object":"embedding","index":{},"embedding":{}}})", written_.size(), numbers));
}

std::string EmbeddingAnswer::text() const {
  return fmt::format(R"({{"object":"list","data":[{}],"model":{},"usage":{{"prompt_tokens":{},"total_tokens":{}}}}})",
                     fmt::join(written_, ","), text_of(Json(model_)), tokens_, tokens_);
}

void EmbeddingListener::refused(std::exception_ptr why) { to_->send(error_reply(why)); }

void EmbeddingListener::ended(std::size_t /*prompt*/, PromptEnd end) {
  to_->send(end.error ? error_reply(late_error(end.error)) : HttpReply{.body = answer_->text()});
}

}  // namespace winnow::server
