// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "server/embeddings/request.h"
#include "server/engine_thread.h"
#include "server/http/message.h"

namespace winnow::server {

/// Embeddings in the format of the answer, in the order of their texts. The engine's thread writes each one when it is
/// computed; at the end of the request, they belong to the listener.
class EmbeddingAnswer {
 public:
  EmbeddingAnswer(std::string model, const EmbeddingRequest& request);

  /// Adds the next text's vector, of length 1.
  void add(std::vector<float> vector);
  std::string text() const;
  /// The most bytes that the answer takes.
  static std::size_t bytes_of(const EmbeddingRequest& request);

 private:
  std::string model_;
  std::size_t tokens_;
  std::size_t dimensions_;
  NumberFormat format_;
  std::vector<std::string> written_;
};

/// Sends embeddings to a client.
class EmbeddingListener : public AnswerListener {
 public:
  EmbeddingListener(std::shared_ptr<const EmbeddingAnswer> answer, std::shared_ptr<Responder> to)
      : answer_(std::move(answer)), to_(std::move(to)) {}

  void accepted() override {}
  void refused(std::exception_ptr why) override;
  void read(std::size_t /*prompt*/, const CacheStats& /*stats*/,
            std::shared_ptr<const KeptPositions> /*kept*/) override {}
  void token(std::size_t /*prompt*/, int /*answer*/, const GeneratedToken& /*token*/,
             const std::string& /*text*/) override {}
  void ended(std::size_t prompt, PromptEnd end) override;

 private:
  std::shared_ptr<const EmbeddingAnswer> answer_;
  std::shared_ptr<Responder> to_;
};

}  // namespace winnow::server
