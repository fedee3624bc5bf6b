// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "base/clock.h"
#include "documents/archive.h"
#include "documents/ingest.h"
#include "winnow/documents.h"

namespace winnow::documents {

/// Adds a document to a store: finds it there, or reads and stores it.
class Adding {
 public:
  /// Throws the errors of DocumentStore::add() for an invalid document, name or options.
  Adding(const Model& model, const NewDocument& document, const CacheOptions& options);

  const Ingestion& reading() const { return reading_; }

  /// Gives the content the document's name if it is stored already. Returns false if it has to be read.
  bool add_known(Archive& archive);
  void begin(Session::Impl& session);
  /// Runs one quantum. Returns false when all has been read.
  bool advance();
  /// Stores the document. Uses no session, so it may run in another thread.
  void keep(Archive& archive);

  /// The cache that was read. REQUIRES: advance() has returned false.
  Cache take_cache() { return std::move(read_->cache); }
  /// The result, once the document is in the store.
  const AddedDocument& added() const { return added_; }

 private:
  void finish(const Archive& archive, double store_ms);

  Label label_;
  Ingestion reading_;
  std::string id_;
  std::optional<Ingested> read_;
  AddedDocument added_;
  Clock::time_point begun_;
};

}  // namespace winnow::documents
