// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "documents/records.h"

namespace winnow::documents {

/// Opens a document of a store. A block's checksum is verified whenever it is read. `what` begins the messages. Throws
/// InputError if the head is damaged or gone.
std::shared_ptr<const Document> open_document(std::shared_ptr<const store::ByteStore> from,
                                              const ContentRecord& content, std::string what);

/// Reads a document's head. Throws InputError if it is damaged, gone, or that of another content.
StoredHead read_head(const store::ByteStore& from, const ContentRecord& content, const std::string& what);

}  // namespace winnow::documents
