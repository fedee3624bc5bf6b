// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/document.h"
#include "winnow/document.h"
#include "winnow/session.h"

namespace winnow::documents {

/// A document that has been read: what is to be stored of it.
struct Ingested {
  Cache cache;
  DocumentHead head;
};

/// Reads a document on its own, from position 0, with its own BOS. With `full` everything that asking wants to know is
/// gathered on the way; what another method compresses can only be put together again (DocumentHead::layers is empty).
/// Throws InputError for an empty document and one longer than the model's context, UsageError for a method whose
/// entries cannot be moved, MemoryError, Interrupted.
Ingested ingest(Session& session, const DocumentText& text, const CacheOptions& options);

}  // namespace winnow::documents
