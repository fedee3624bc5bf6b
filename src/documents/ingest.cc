// SPDX-License-Identifier: Apache-2.0
#include "documents/ingest.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "documents/facts.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/prefill.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

using attention::ObservedRows;
using attention::Reduction;

/// Gathers what asking wants to know of a document while it is read.
class FactsWatcher : public engine::PromptWatcher {
 public:
  FactsWatcher(Session::Impl& session, int tokens)
      : hparams_(session.hparams),
        queries_(session.account, as_size(tokens) * most_query_width(hparams_) * sizeof(float), "one layer's queries"),
        logsums_(as_size(tokens) * as_size(engine::most_heads(hparams_).query)),
        all_({{ObservedRows::Kind::all, 0, {}}, Reduction::sum}, 0, tokens),
        diagonal_({{ObservedRows::Kind::band, 0, {}}, Reduction::sum}, 0, tokens) {}

  engine::Watchers begin_layer(int layer) override {
    all_.begin_layer(hparams_.layer(layer).n_head);
    diagonal_.begin_layer(hparams_.layer(layer).n_head);
    return {{&all_, &diagonal_}, {}, {}, {queries_.as<float>().data(), logsums_.data()}};
  }

  void end_layer(int layer, const cache::LayerScratch& scratch) override {
    const auto shape = engine::shape_of(hparams_.layer(layer));
    facts_.push_back(facts_of({shape, &scratch, queries_.as<float>(), logsums_, &all_, &diagonal_}));
  }

  std::vector<LayerFacts> take_facts() { return std::move(facts_); }

  static std::size_t bytes(const model::Hparams& h, int tokens) {
    return as_size(tokens) * (most_query_width(h) + 3 * as_size(engine::most_heads(h).query)) * sizeof(float);
  }

 private:
  static std::size_t most_query_width(const model::Hparams& h) {
    std::size_t most = 0;
    for (const auto& kind : h.kinds) most = std::max(most, as_size(kind.n_head) * as_size(kind.head_dim));
    return most;
  }

  const model::Hparams& hparams_;
  Buffer queries_;                ///< [N][H_q][d] of the layer
  CountedVector<float> logsums_;  ///< [N][H_q]
  attention::Observation all_;
  attention::Observation diagonal_;
  std::vector<LayerFacts> facts_;
};

/// Full: what is kept is all, and all that asking wants to know is gathered.
Ingested read_whole(Session::Impl& session, std::span<const Token> tokens, const CacheOptions& options) {
  const auto& h = session.hparams;
  const int n = static_cast<int>(tokens.size());
  const auto need = engine::prefill_bytes(h, session.model->impl().vocab, session.options, n, n, std::span(&n, 1),
                                          std::span(&options, 1)) +
                    FactsWatcher::bytes(h, n);
  check_memory(need, fmt::format("reading a document of {} tokens", n));
  const Session::Impl::Stops stopping(session);
  const CountingScope counting(session.account);
  FactsWatcher watcher(session, n);
  auto context = session.prefill_context(session.begin_pass(tokens.size(), need));
  context.watcher = &watcher;
  const std::vector<std::vector<Token>> nothing_more(1);
  engine::Prefill prefill(std::move(context), tokens, nothing_more, std::span(&options, 1));
  while (prefill.advance()) continue;
  Ingested out{std::move(prefill.take_caches(0).front()), {}};
  out.head.layers = watcher.take_facts();
  return out;
}

void check_method(const CacheOptions& options) {
  const auto& method = options.spec.method();
  const bool stays = method.positions == policy::Positions::absolute && method.lanes.merged_entries == 0 &&
                     !method.decoding.attend && !method.retrieves;
  if (!stays) {
    throw UsageError(
        fmt::format("{} cannot compress a document that is to be put together with others: its entries do not stay at "
                    "their places in the text",
                    options.spec.print()));
  }
}

std::vector<Token> tokens_of(const Session& session, const DocumentText& text) {
  auto tokens = text.tokens;
  if (tokens.empty()) {
    if (text.text.empty()) throw InputError("the document is empty: there is nothing to read");
    tokens = session.model().tokenize(Conversation{text.text, {}, PromptFormat::raw, text.control});
  }
  const auto& info = session.model().info();
  if (tokens.size() > as_size(info.ctx_train)) {
    throw InputError(fmt::format("the document has {} tokens, the model's context {}", tokens.size(), info.ctx_train));
  }
  for (const Token token : tokens) {
    if (token < 0 || token >= info.n_vocab)
      throw InputError(fmt::format("token {} is not in the vocabulary of {} tokens", token, info.n_vocab));
  }
  return tokens;
}

}  // namespace

Ingested ingest(Session& session, const DocumentText& text, const CacheOptions& options) {
  options.check();
  check_method(options);
  const auto tokens = tokens_of(session, text);
  auto& s = session.impl();
  const bool whole = options.spec == Spec();
  Ingested out =
      whole ? read_whole(s, tokens, options)
            : Ingested{std::move(session.prefill(tokens, std::span(&options, 1)).caches.front()), DocumentHead{}};
  const Conversation words{text.text, {}, PromptFormat::raw, text.control};
  out.head.saved = engine::head_of(out.cache.impl(), engine::identity_of(s.hparams, s.model->hash()), {words, tokens});
  return out;
}

}  // namespace winnow::documents
