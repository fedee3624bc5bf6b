// SPDX-License-Identifier: Apache-2.0
#include "eval/reading.h"

#include <memory>
#include <utility>

#include "base/clock.h"
#include "documents/resident.h"

namespace winnow::eval {

namespace {

using Documents = std::vector<std::shared_ptr<const documents::Document>>;

/// Reads the prompt once, with all methods that are caches.
std::vector<Reading> read_whole(Session& session, const TokenizedSample& sample, std::span<const Method> methods) {
  std::vector<CacheOptions> caches;
  for (const auto& method : methods) {
    if (!method.ask()) caches.push_back(method.cache());
  }
  if (caches.empty()) return {};
  const auto first = sample.protocol == Protocol::aware || sample.prompt.text.empty() ? FirstToken::full_attention
                                                                                      : FirstToken::what_is_kept;
  const auto& [text, question] = sample.prompt;
  auto start = Questions(session, text, {question}, sample.protocol, caches).ask(0);
  std::vector<Reading> out;
  for (std::size_t i = 0; i < caches.size(); ++i)
    out.push_back({std::move(start.caches[i]), std::move(start.logits[i]), start.stats[i], first});
  return out;
}

/// The documents of a sample, read on first use.
class ReadDocuments {
 public:
  ReadDocuments(Session& session, const TokenizedSample& sample) : session_(session), sample_(sample) {}

  const Documents& in(const KvType& kv_type) {
    auto& out = by_type_[kv_type.print()];
    if (!out.empty()) return out;
    const CacheOptions whole{Spec(), {}, kv_type};
    for (const auto& tokens : sample_.documents)
      out.push_back(documents::resident(documents::ingest(session_, {"", ControlTokens::as_text, tokens}, whole)));
    return out;
  }

 private:
  Session& session_;
  const TokenizedSample& sample_;
  std::map<std::string, Documents> by_type_;
};

Reading ask_over(Session& session, const Documents& documents, const std::vector<Token>& question,
                 const AskOptions& options) {
  const auto begin = Clock::now();
  Asked asked = ask(session, documents, question, options);
  const double ttft_ms = ms_since(begin);
  const auto stats = asked.cache.stats();
  return {std::move(asked.cache),
          std::move(asked.logits),
          stats,
          FirstToken::what_is_kept,
          {{"ttft_ms", ttft_ms}, {"sequence_ratio", asked.sequence_ratio}, {"recompute_ratio", asked.recompute_ratio}}};
}

}  // namespace

std::vector<Reading> read(Session& session, const TokenizedSample& sample, std::span<const Method> methods) {
  auto whole = read_whole(session, sample, methods);
  auto next = whole.begin();
  ReadDocuments documents(session, sample);
  std::vector<Reading> out;
  for (const auto& method : methods) {
    if (!method.ask()) {
      out.push_back(std::move(*next++));
    } else {
      out.push_back(ask_over(session, documents.in(method.kv_type()), sample.prompt.question, *method.ask()));
    }
  }
  return out;
}

}  // namespace winnow::eval
