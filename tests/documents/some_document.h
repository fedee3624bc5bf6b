// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "documents/document.h"
#include "engine/model_impl.h"
#include "engine/saved.h"
#include "engine/sequence.h"
#include "engine/session_impl.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/session.h"

namespace winnow::test {

inline std::vector<Token> some_tokens(int n, unsigned seed) { return random_tokens(n, 251, seed); }

/// Random facts of a valid shape.
inline documents::LayerFacts some_facts(const engine::SavedHead& saved, int layer, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  const auto& m = saved.model.of_layer(layer);
  const documents::BlockLayout layout{saved.seen};
  const auto floats = [&](int n) {
    std::vector<float> out(n);
    for (float& x : out) x = normal(random);
    return out;
  };
  documents::LayerFacts out;
  out.local_query = floats(m.group * m.kv_heads * m.head_dim);
  out.edge_key = floats(m.kv_heads * m.head_dim);
  out.block_keys = floats(layout.middle() * m.kv_heads * m.head_dim);
  for (int b = layout.initial(); b < layout.first_local(); ++b)
    out.representatives.push_back({layout.begin(b) + static_cast<int>(random() % documents::kBlock), 1.5F, 0.25F});
  if (layout.middle() > 1) out.outliers = {out.representatives[0].token, out.representatives[1].token};
  out.received = floats(m.kv_heads * saved.seen);
  return out;
}

/// A document of a tiny model, with its cache.
struct SomeDocument {
  Cache cache;
  documents::DocumentHead head;

  const engine::Sequence& sequence() const { return cache.impl(); }
};

inline SomeDocument document_of(Session& session, const std::vector<Token>& tokens, const CacheOptions& options) {
  SomeDocument out{std::move(session.prefill(tokens, std::span(&options, 1)).caches.front()), {}};
  const auto model = engine::identity_of(session.impl().hparams, session.model().hash());
  out.head.saved =
      engine::head_of(out.cache.impl(), model, {Conversation{"some words", {}, PromptFormat::raw, {}}, tokens});
  if (options.spec == Spec()) {
    for (int layer = 0; layer < model.layers; ++layer)
      out.head.layers.push_back(some_facts(out.head.saved, layer, static_cast<unsigned>(layer)));
  }
  return out;
}

class TinySession {
 public:
  explicit TinySession(std::uint32_t seed = 1) {
    TinyModel tiny;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    tiny.head_dim = 32;
    tiny.ctx_train = 1024;
    tiny.seed = seed;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model = Model::load(folder_ / "tiny.gguf");
    // One thread, because the thread sanitizer does not see how the threads of ggml's team are synchronised.
    session = std::make_unique<Session>(model, SessionOptions{1, Precision::automatic, 128});
  }

  SomeDocument read(const std::vector<Token>& tokens, const CacheOptions& options) {
    return document_of(*session, tokens, options);
  }
  SomeDocument read(int tokens, const CacheOptions& options = {}, unsigned seed = 1) {
    return read(some_tokens(tokens, seed), options);
  }

  engine::ModelIdentity identity() const { return engine::identity_of(session->impl().hparams, model->hash()); }

 private:
  TempFolder folder_;

 public:
  std::shared_ptr<const Model> model;
  std::unique_ptr<Session> session;
};

}  // namespace winnow::test
