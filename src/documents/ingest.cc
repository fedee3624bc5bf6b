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
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::documents {

using attention::ObservedRows;
using attention::Reduction;

/// Gathers what asking wants to know of a document while it is read.
class Ingestion::FactsWatcher : public engine::PromptWatcher {
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
    const auto shape = engine::shape_of(hparams_, layer);
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

namespace {

void check_method(const CacheOptions& options) {
  const auto& method = options.spec.method();
  const auto refuse = [&](const char* why) {
    throw UsageError(fmt::format("{} cannot compress a document that is to be put together with others: {}",
                                 method_label(options.spec.print()), why));
  };
  if (method.decoding.attend || method.retrieves)
    refuse("each query reads only some of its entries, or at other distances");
  if (method.positions != policy::Positions::absolute || method.lanes.merged_entries > 0)
    refuse("its entries do not stay at their places in the text");
}

/// A document's entries in a layer with a window would have to be stored whole: the tokens that are computed again
/// anywhere in it see their neighbours.
void check_windows(const ModelInfo& info) {
  if (info.window_layers() == 0) return;
  throw UsageError(fmt::format("documents need a model without sliding windows: {} of the {} layers of {} have one",
                               info.window_layers(), info.n_layer, info.path));
}

/// The layers of a document are put together one by one.
void check_shared_keys(const Model& model) {
  const auto& hparams = model.impl().weights->hparams();
  const int readers = hparams.n_layer - hparams.n_kv_layer;
  if (readers == 0) return;
  throw UsageError(fmt::format(
      "documents need a model whose layers have keys of their own: {} of the {} layers of {} read those of others",
      readers, hparams.n_layer, model.info().path));
}

/// A document's keys are turned by its place among the others.
void check_turning(const Model& model) {
  if (model.impl().weights->hparams().keys_turn()) return;
  throw UsageError(
      fmt::format("documents cannot be put together with the architecture {} of {}: its keys are normed after they are "
                  "rotated, and cannot be turned to other positions",
                  model.info().arch, model.info().path));
}

std::vector<Token> tokens_of(const Model& model, const DocumentText& text) {
  auto tokens = text.tokens;
  if (tokens.empty()) {
    if (text.text.empty()) throw InputError("the document is empty: there is nothing to read");
    tokens = model.tokenize(Conversation{text.text, {}, PromptFormat::raw, text.control});
  }
  const auto& info = model.info();
  if (tokens.size() > as_size(info.context)) {
    throw InputError(fmt::format("the document has {} tokens, the model's context {}", tokens.size(), info.context));
  }
  for (const Token token : tokens) {
    if (token < 0 || token >= info.n_vocab)
      throw InputError(fmt::format("token {} is not in the vocabulary of {} tokens", token, info.n_vocab));
  }
  return tokens;
}

}  // namespace

Ingestion::Ingestion(const Model& model, DocumentText text, const CacheOptions& options)
    : text_(std::move(text)), options_(options) {
  options_.check();
  check_windows(model.info());
  check_shared_keys(model);
  check_turning(model);
  check_method(options_);
  text_.tokens = tokens_of(model, text_);
}

Ingestion::~Ingestion() = default;

std::size_t Ingestion::bytes(const Session::Impl& session) const {
  const int n = static_cast<int>(tokens().size());
  return session.prefill_bytes(n, std::span(&options_, 1)) + (is_whole() ? FactsWatcher::bytes(session.hparams, n) : 0);
}

void Ingestion::begin(Session::Impl& session) {
  const auto need = bytes(session);
  check_memory(need, fmt::format("reading a document of {} tokens", tokens().size()));
  const CountingScope counting(session.account);
  session_ = &session;
  if (is_whole()) watcher_ = std::make_unique<FactsWatcher>(session, static_cast<int>(tokens().size()));
  auto context = session.prefill_context(session.begin_pass(tokens().size(), need));
  context.watcher = watcher_.get();
  prefill_.emplace(session, std::move(context), need, tokens(), std::vector<std::vector<Token>>(1),
                   std::span(&options_, 1));
}

bool Ingestion::advance() {
  const Session::Impl::Stops stopping(*session_);
  return prefill_->advance();
}

double Ingestion::done() const { return prefill_ ? prefill_->done() : 0; }

Ingested Ingestion::take() {
  Ingested out{std::move(prefill_->take_caches(0).front()), {}};
  if (watcher_) out.head.layers = watcher_->take_facts();
  prefill_.reset();
  watcher_.reset();
  const Conversation words{text_.text, {}, PromptFormat::raw, text_.control};
  const auto model = engine::identity_of(session_->hparams, session_->model->hash());
  out.head.saved = engine::head_of(out.cache.impl(), model, {words, tokens()});
  return out;
}

Ingested ingest(Session& session, const DocumentText& text, const CacheOptions& options) {
  Ingestion ingestion(session.model(), text, options);
  ingestion.begin(session.impl());
  while (ingestion.advance()) continue;
  return ingestion.take();
}

}  // namespace winnow::documents
