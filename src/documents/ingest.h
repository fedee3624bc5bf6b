// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "documents/document.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"
#include "winnow/document.h"
#include "winnow/session.h"

namespace winnow::documents {

/// A document that has been read: what is to be stored of it.
struct Ingested {
  Cache cache;
  DocumentHead head;
};

/// A document that is read on its own, from position 0, with its own BOS: by quanta, so that others may use the session
/// in between. With `full` everything that asking wants to know is gathered on the way; what another method compresses
/// can only be put together again (DocumentHead::layers is empty).
class Ingestion {
 public:
  /// Throws InputError for an empty document and one longer than the model's context, UsageError for a method whose
  /// entries cannot be moved.
  Ingestion(const Model& model, DocumentText text, const CacheOptions& options);
  ~Ingestion();

  /// All of the document's, with BOS.
  const std::vector<Token>& tokens() const { return text_.tokens; }
  const CacheOptions& options() const { return options_; }
  /// The most that it has in use.
  std::size_t bytes(const Session::Impl& session) const;

  /// Throws MemoryError. The session outlives it.
  void begin(Session::Impl& session);
  /// One chunk passes through one layer. Returns false when there is no more to read. REQUIRES: begin().
  bool advance();
  /// The share that has been read.
  double done() const;
  /// REQUIRES: advance() has returned false.
  Ingested take();

 private:
  class FactsObserver;
  bool is_whole() const { return options_.spec == Spec(); }

  DocumentText text_;
  CacheOptions options_;
  Session::Impl* session_ = nullptr;
  std::unique_ptr<FactsObserver> observer_;  ///< of what is kept as a whole
  std::optional<engine::PromptReading> reading_;
};

/// Reads a document at once. Throws what Ingestion throws, and Interrupted.
Ingested ingest(Session& session, const DocumentText& text, const CacheOptions& options);

}  // namespace winnow::documents
