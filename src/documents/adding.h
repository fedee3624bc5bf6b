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

/// A document on its way into a store: it is there already, or it is read and then kept.
class Adding {
 public:
  /// Throws what DocumentStore::add() throws for a document, name or options that cannot be.
  Adding(const Model& model, const NewDocument& document, const CacheOptions& options);

  const Ingestion& reading() const { return reading_; }

  /// Gives the content the document's name if it is there. False: it has to be read.
  bool add_known(Archive& archive);
  void begin(Session::Impl& session);
  /// Reads on; returns false when all has been read.
  bool advance();
  /// Keeps what has been read. No session is used, so that it may be done in another thread.
  void keep(Archive& archive);

  /// The cache that was read. REQUIRES: advance() has returned false.
  Cache take_cache() { return std::move(read_->cache); }
  /// What it came to, when it is in the store.
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
