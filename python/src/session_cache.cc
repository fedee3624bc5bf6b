// SPDX-License-Identifier: Apache-2.0
#include "session_cache.h"

#include "winnow/error.h"

namespace winnow::python {

Logits share(std::vector<float> logits) {
  return logits.empty() ? nullptr : std::make_shared<const std::vector<float>>(std::move(logits));
}

Cache& SessionCache::cache() {
  if (!cache_)
    throw UsageError("the cache cannot be used: it belongs to a running stream, or was lost when one failed");
  return *cache_;
}

Cache SessionCache::lend() {
  Cache out = std::move(cache());
  cache_.reset();
  return out;
}

std::vector<Token> SessionCache::unseen() {
  const auto seen = std::min<std::ptrdiff_t>(cache().stats().tokens_seen, std::ssize(transcript_.tokens));
  return {transcript_.tokens.begin() + seen, transcript_.tokens.end()};
}

std::vector<Token> SessionCache::tokens_for(const std::vector<Token>& more) {
  auto out = unseen();
  out.insert(out.end(), more.begin(), more.end());
  transcript_.tokens.insert(transcript_.tokens.end(), more.begin(), more.end());
  return out;
}

std::vector<Token> SessionCache::tokens_for(const std::string& question) {
  const auto turn = session_->model()->turn(transcript_.conversation, question);
  transcript_.conversation = transcript_.conversation.with_question(question);
  return tokens_for(turn.tokens);
}

}  // namespace winnow::python
