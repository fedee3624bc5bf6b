// SPDX-License-Identifier: Apache-2.0
#include "documents/ingest.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "documents/facts.h"
#include "documents/pass.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/prefill.h"
#include "engine/session_impl.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

using attention::ObservedRows;
using attention::Reduction;

/// One document on its way through the layers, alone.
class Reading {
 public:
  Reading(Session::Impl& session, std::span<const Token> tokens, const CacheOptions& options)
      : session_(session),
        n_(static_cast<int>(tokens.size())),
        scratch_(session.account, engine::scratch_type(session.options.precision, std::span(&options, 1)),
                 engine::kv_heads_of(session.hparams), n_),
        hidden_(session.account, engine::hidden_bytes(session.hparams, tokens.size()),
                "the hidden states of the document"),
        queries_(session.account, tokens.size() * most_query_width(session.hparams) * sizeof(float),
                 "one layer's queries"),
        logsums_(tokens.size() * as_size(engine::most_heads(session.hparams).query)),
        all_({{ObservedRows::Kind::all, 0, {}}, Reduction::sum}, 0, n_),
        diagonal_({{ObservedRows::Kind::band, 0, {}}, Reduction::sum}, 0, n_) {
    session_.executor.embed(tokens, hidden_.as<float>().data());
  }

  LayerFacts layer(int layer) {
    const auto& spec = session_.hparams.layer(layer);
    const auto shape = engine::shape_of(spec);
    scratch_.begin_layer(engine::kv_heads_of(spec));
    all_.begin_layer(spec.n_head);
    diagonal_.begin_layer(spec.n_head);
    for (int done = 0; done < n_; done += session_.options.chunk)
      chunk(layer, done, std::min(session_.options.chunk, n_ - done));
    return facts_of({shape, &scratch_, queries_.as<float>(), logsums_, &all_, &diagonal_});
  }

  const cache::LayerScratch& scratch() const { return scratch_; }

  static std::size_t bytes(const model::Hparams& h, int tokens) {
    return as_size(tokens) * (most_query_width(h) + 3 * as_size(engine::most_heads(h).query)) * sizeof(float);
  }

 private:
  static std::size_t query_width(const attention::Shape& shape) {
    return as_size(shape.query_heads) * as_size(shape.head_dim);
  }
  static std::size_t most_query_width(const model::Hparams& h) {
    std::size_t most = 0;
    for (const auto& kind : h.kinds) most = std::max(most, query_width(engine::shape_of(kind)));
    return most;
  }

  void chunk(int layer, int first, int count) {
    const auto shape = engine::shape_of(session_.hparams.layer(layer));
    const std::size_t width = query_width(shape);
    auto& attention = session_.prefill_attention;
    std::vector<std::int32_t> rows(as_size(count));
    std::iota(rows.begin(), rows.end(), first);
    scratch_.extend(rows);
    attention::Observation* const observers[] = {&all_, &diagonal_};
    const auto begin = [&](const auto& tensors) {
      attention.record_logsums(logsums_.data() + as_size(first) * as_size(shape.query_heads));
      attention.begin(shape, scratch_, tensors.q, tensors.out, first, count, observers);
    };
    const auto keep_queries = [&](const auto& tensors, Worker worker) {
      const std::size_t bytes = width * sizeof(float);
      for (int row = worker.index; row < count; row += worker.count)
        std::memcpy(queries_.data() + as_size(first + row) * bytes, tensors.q + as_size(row) * width, bytes);
    };
    RowAttention op(attention, scratch_, rows, begin, keep_queries);
    float* const hidden = hidden_.as<float>().data() + static_cast<std::ptrdiff_t>(first) * session_.hparams.n_embd;
    struct Unset {
      attention::PrefillAttention& attention;
      ~Unset() { attention.record_logsums(nullptr); }
    } unset{attention};
    session_.executor.run_layer(layer, hidden, rows, op);
    op.rethrow();
  }

  Session::Impl& session_;
  int n_;
  cache::LayerScratch scratch_;
  Buffer hidden_;
  Buffer queries_;                ///< [N][H_q][d] of the layer
  CountedVector<float> logsums_;  ///< [N][H_q]
  attention::Observation all_;
  attention::Observation diagonal_;
};

/// Full: what is kept is all, and all that asking wants to know is gathered.
Ingested read_whole(Session::Impl& session, std::span<const Token> tokens, const CacheOptions& options) {
  const auto& h = session.hparams;
  const int n = static_cast<int>(tokens.size());
  const auto need = engine::prefill_bytes(h, session.model->impl().vocab, session.options, n, n, std::span(&n, 1),
                                          std::span(&options, 1)) +
                    Reading::bytes(h, n);
  check_memory(need, fmt::format("reading a document of {} tokens", n));
  const Session::Impl::Stops stopping(session);
  const Session::Impl::PackedPass packed(session, tokens.size(), need);
  auto cache = std::make_unique<Cache::Impl>(Cache::Impl{options,
                                                         &h,
                                                         &session.account,
                                                         engine::empty_lanes(options, h, session.account),
                                                         n,
                                                         engine::terms_of(options, h, n),
                                                         {}});
  const CountingScope counting(session.account);
  Reading reading(session, tokens, options);
  DocumentHead head;
  for (int layer = 0; layer < h.n_layer; ++layer) {
    head.layers.push_back(reading.layer(layer));
    cache->lanes.layer(layer).commit({}, reading.scratch());
    cache->limit.emplace_back(as_size(h.layer(layer).n_head_kv), n);
    if (session.progress) session.progress(static_cast<double>(layer + 1) / h.n_layer);
  }
  return {Cache(std::move(cache)), std::move(head)};
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
  const auto& cache = out.cache.impl();
  const Conversation words{text.text, {}, PromptFormat::raw, text.control};
  out.head.saved = {options,        options.spec.print_full(), engine::identity_of(s.hparams, s.model->hash()),
                    cache.seen,     cache.terms.front(),       cache.limit,
                    {words, tokens}};
  return out;
}

}  // namespace winnow::documents
