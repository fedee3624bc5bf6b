// SPDX-License-Identifier: Apache-2.0
#include "server/request_memory.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <string_view>
#include <utility>

#include "base/as_size.h"
#include "base/format.h"
#include "server/engine_thread.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

/// An upper bound of the number of values in a text if it is parsed as JSON: opening brackets and commas outside of
/// strings. Much cheaper than parsing, which takes memory.
std::size_t most_values(std::string_view json) {
  std::size_t out = 1;
  bool is_string = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (c == '"') is_string = !is_string;
    if (is_string && c == '\\') ++i;
    if (!is_string && (c == ',' || c == '[' || c == '{')) ++out;
  }
  return out;
}

/// Bytes of an object's value: a node of a map and a name, another one for the order of members, and an entry for
/// detecting duplicates.
constexpr std::size_t kValueBytes = 320;
/// Copies of a body's texts: as received, with spare capacity, as parts of messages, and joined.
constexpr std::size_t kTextCopies = 4;
/// Copies of a prompt's tokens: in the request, and stored with its kept positions.
constexpr std::size_t kTokenCopies = 3;
/// Bytes of each answer: a sampler, a filter of stop texts, and what has been sent.
constexpr std::size_t kAnswerBytes = 4096;

}  // namespace

void RequestShare::hold(std::size_t bytes) {
  if (bytes > memory_->most_)
    throw ApiError(413, fmt::format("the request's contents take {}, but those of all requests together may take {}: "
                                    "start the server with more --memory",
                                    format_bytes(bytes), format_bytes(memory_->most_)));
  std::size_t held = memory_->held_;
  do {
    if (const std::size_t others = held - bytes_; others > memory_->most_ - bytes)
      throw QueueFull(
          fmt::format(
              "the contents of other requests take {} and this one's {}, but all together may take {}: try again later",
              format_bytes(others), format_bytes(bytes), format_bytes(memory_->most_)),
          1);
  } while (!memory_->held_.compare_exchange_weak(held, held - bytes_ + bytes));
  bytes_ = bytes;
}

Json parse_counted(const std::string& body, RequestShare& share) {
  share.hold(kTextCopies * body.size() + kValueBytes * most_values(body));
  return parse_body(body);
}

std::shared_ptr<Responder> holding(std::shared_ptr<RequestShare> share, std::shared_ptr<Responder> to) {
  struct Both {
    std::shared_ptr<RequestShare> share;
    std::shared_ptr<Responder> to;
  };
  auto* const responder = to.get();
  return {std::make_shared<Both>(Both{std::move(share), std::move(to)}), responder};
}

std::size_t bytes_of_tokenizing(std::size_t text_bytes) {
  constexpr std::size_t kPerByte = 112;  // libllama's peak for 2 MiB of spaces; 34 for prose
  return kPerByte * text_bytes;
}

std::size_t bytes_of_tokens(std::size_t tokens) { return kTokenCopies * sizeof(Token) * tokens; }

std::size_t bytes_of(const Request& request) {
  const auto& generate = request.generate;
  const auto* const read = std::get_if<RequestText>(&request.source);
  const std::size_t tokens = (read == nullptr ? 0 : read->tokens.size()) + request.question.size();
  std::size_t out = sizeof(request) + bytes_of_tokens(tokens);
  for (const auto* const texts : {&generate.stop, &generate.grammar_triggers}) {
    for (const auto& text : *texts) out += sizeof(std::string) + text.size();
  }
  out += generate.stop_tokens.size() * sizeof(Token) + generate.grammar.size();
  out += generate.sampling.logit_bias.size() * sizeof(generate.sampling.logit_bias.front());
  return out + as_size(request.answers) * kAnswerBytes;
}

}  // namespace winnow::server
