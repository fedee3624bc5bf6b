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

/// A document that has been read, to be stored.
struct Ingested {
  Cache cache;
  DocumentHead head;
};

/// Reads a document separately, from position 0, with its own BOS, by quanta. With `full`, statistics for ask methods
/// are collected. A compressed document has none (DocumentHead::layers is empty) and can only be concatenated.
class Ingestion {
 public:
  /// Throws InputError for an empty document or one longer than the model's context, UsageError for a method whose
  /// entries cannot be moved.
  Ingestion(const Model& model, DocumentText text, const CacheOptions& options);
  ~Ingestion();

  /// All tokens of the document, with BOS.
  const std::vector<Token>& tokens() const { return text_.tokens; }
  const CacheOptions& options() const { return options_; }
  /// The most bytes in use.
  std::size_t bytes(const Session::Impl& session) const;

  /// Throws MemoryError. The session outlives it.
  void begin(Session::Impl& session);
  /// Runs one chunk through one layer. Returns false when all has been read. REQUIRES: begin().
  bool advance();
  /// Fraction that has been read.
  double done() const;
  /// REQUIRES: advance() has returned false.
  Ingested take();

 private:
  class FactsObserver;
  bool is_whole() const { return options_.spec == Spec(); }

  DocumentText text_;
  CacheOptions options_;
  Session::Impl* session_ = nullptr;
  std::unique_ptr<FactsObserver> observer_;  ///< null for compressed documents
  std::optional<engine::PromptReading> reading_;
};

/// Reads a document at once. Throws the errors of Ingestion, and Interrupted.
Ingested ingest(Session& session, const DocumentText& text, const CacheOptions& options);

}  // namespace winnow::documents
