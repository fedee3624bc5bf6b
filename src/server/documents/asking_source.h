// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <vector>

#include "documents/asking.h"
#include "engine/cache_source.h"
#include "server/hidden_place.h"

namespace winnow::server {

/// Answers a question over documents as a request among others.
class AskingSource : public engine::CacheSource {
 public:
  /// The documents are from a store at `place`. Throws what Asking throws.
  AskingSource(std::vector<std::shared_ptr<const documents::Document>> documents, HiddenPlace place,
               std::vector<Token> question, const AskOptions& options)
      : asking_(std::move(documents), std::move(question), options), place_(std::move(place)) {}

  int tokens() const override { return asking_.tokens(); }
  std::size_t bytes(const Session::Impl& session) const override { return asking_.bytes(session); }
  std::size_t cache_bytes(const Session::Impl& session) const override { return asking_.cache_bytes(session); }
  void begin(Session::Impl& session) override { asking_.begin(session); }
  /// Throws StoreError if the store is gone, ApiError if a document is.
  bool advance() override;
  double done() const override { return asking_.done(); }
  Cache take_cache() override;
  std::vector<float> take_logits() override { return std::move(logits_); }

 private:
  documents::Asking asking_;
  HiddenPlace place_;
  std::vector<float> logits_;
};

}  // namespace winnow::server
