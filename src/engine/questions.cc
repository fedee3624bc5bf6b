// SPDX-License-Identifier: Apache-2.0
#include "winnow/questions.h"

#include <utility>

namespace winnow {

namespace {

std::vector<CacheStats> stats_of(const std::vector<Cache>& caches) {
  std::vector<CacheStats> out;
  for (const auto& cache : caches) out.push_back(cache.stats());
  return out;
}

Prefilled copy_of(const Prefilled& text) {
  Prefilled out{{}, text.logits, text.cached_tokens};
  for (const auto& cache : text.caches) out.caches.push_back(cache.clone());
  return out;
}

}  // namespace

Questions::Questions(Session& session, std::span<const Token> text, std::vector<std::vector<Token>> questions,
                     Protocol protocol, std::span<const CacheOptions> caches)
    : session_(session), questions_(std::move(questions)) {
  if (protocol == Protocol::aware || text.empty()) {
    read_ = session.prefill(text, questions_, caches);
  } else {
    text_ = session.prefill(text, caches);
  }
}

Questions::Questions(Session& session, Prefilled text, std::vector<std::vector<Token>> questions)
    : session_(session), questions_(std::move(questions)), text_(std::move(text)) {}

AnswerStart Questions::ask(std::size_t question) {
  if (text_) {
    const bool is_last = question + 1 == questions_.size();
    return ask_text(questions_[question], is_last ? std::move(*text_) : copy_of(*text_));
  }
  auto& [caches, logits, cached] = read_[question];
  AnswerStart out{{}, std::vector(caches.size(), logits), stats_of(caches), cached};
  out.caches = std::move(caches);
  return out;
}

AnswerStart Questions::ask_text(const std::vector<Token>& question, Prefilled text) {
  AnswerStart out{std::move(text.caches), {}, {}, text.cached_tokens};
  out.stats = stats_of(out.caches);
  for (auto& cache : out.caches)
    out.logits.push_back(question.empty() ? text.logits : session_.extend(cache, question));
  return out;
}

}  // namespace winnow
