// SPDX-License-Identifier: Apache-2.0
#include "documents/ingest.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "documents/facts.h"
#include "engine/layer_record.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "winnow/error.h"
#include "winnow/recommended.h"

namespace winnow::documents {

/// Collects statistics for ask methods while a document is read.
class Ingestion::FactsObserver : public engine::LayerRecord {
 public:
  FactsObserver(Session::Impl& session, int tokens)
      : LayerRecord(session.hparams, session.account, tokens), hparams_(session.hparams) {}

  void end_layer(const policy::EndedLayer& layer) override {
    const auto shape = engine::shape_of(hparams_, layer.number);
    facts_.push_back(facts_of({shape, &layer.scratch, queries(), log_sums(), &sums(), &diagonal()}));
  }

  std::vector<LayerFacts> take_facts() { return std::move(facts_); }

 private:
  const model::Hparams& hparams_;
  std::vector<LayerFacts> facts_;
};

namespace {

void check_method(const CacheOptions& options) {
  const auto& method = options.spec.method();
  const auto refuse = [&](const char* why) {
    throw UsageError(fmt::format("{} cannot compress a document that is combined with others: {}",
                                 method_label(options.spec.print()), why));
  };
  if (method.decoding.attend || method.retrieves) refuse("it changes which entries a query reads, or their distances");
  if (method.positions != policy::Positions::absolute || method.lanes.merged_entries > 0)
    refuse("its entries do not stay at their positions in the text");
}

/// Layers with windows would have to store all of a document's entries, because recomputed tokens anywhere in it read
/// their neighbours.
void check_windows(const ModelInfo& info) {
  if (info.window_layers() == 0) return;
  throw UsageError(fmt::format("documents need a model without sliding windows, but {} of the {} layers of {} have one",
                               info.window_layers(), info.n_layer, info.path));
}

/// Refuses models whose layers share keys: documents are combined layer by layer.
void check_shared_keys(const Model& model) {
  const auto& hparams = engine::hparams_of(model);
  const int readers = hparams.n_layer - hparams.n_kv_layer;
  if (readers == 0) return;
  throw UsageError(
      fmt::format("documents need a model whose layers all have keys of their own, but {} of the {} layers of {} read "
                  "those of other layers",
                  readers, hparams.n_layer, model.info().path));
}

/// A document's keys are rotated to its place among the others.
void check_turning(const Model& model) {
  if (engine::hparams_of(model).keys_turn()) return;
  throw UsageError(
      fmt::format("documents cannot be combined with the architecture {} of {}: its keys are normed after RoPE, so "
                  "they cannot be rotated to other positions",
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
    throw InputError(
        fmt::format("the document has {} tokens, more than the model's context of {}", tokens.size(), info.context));
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
  return engine::ReadingPlan(session, n, options_).bytes().all() +
         (is_whole() ? engine::LayerRecord::bytes(session.hparams, n) : 0);
}

void Ingestion::begin(Session::Impl& session) {
  check_memory(bytes(session), fmt::format("reading a document of {} tokens", tokens().size()));
  const CountingScope counting(session.account);
  const int n = static_cast<int>(tokens().size());
  session_ = &session;
  if (is_whole()) observer_ = std::make_unique<FactsObserver>(session, n);
  reading_.emplace(session, engine::ReadingPlan(session, n, options_),
                   engine::ReadingInput{.text = tokens(), .observer = observer_.get()});
}

bool Ingestion::advance() { return reading_->advance(); }

double Ingestion::done() const { return reading_ ? reading_->done() : 0; }

Ingested Ingestion::take() {
  Ingested out{std::move(reading_->take_caches(0).front()), {}};
  if (observer_) out.head.layers = observer_->take_facts();
  reading_.reset();
  observer_.reset();
  const Conversation words{text_.text, {}, PromptFormat::raw, text_.control};
  const auto model = engine::identity_of(*session_->model);
  out.head.saved = engine::head_of(engine::sequence_of(out.cache), model, {words, tokens()});
  return out;
}

Ingested ingest(Session& session, const DocumentText& text, const CacheOptions& options) {
  Ingestion ingestion(session.model(), text, options);
  ingestion.begin(engine::parts_of(session));
  while (ingestion.advance()) continue;
  return ingestion.take();
}

}  // namespace winnow::documents
