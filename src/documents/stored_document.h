// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "documents/records.h"

namespace winnow::documents {

/// Reads a document from a store. Keys and values are read where the store has them; a block's checksum is verified
/// when it is read for the first time, that of a copy each time. `what` begins the messages. Throws InputError when the
/// head is damaged or gone.
std::shared_ptr<const Document> open_document(std::shared_ptr<const store::ByteStore> from,
                                              const ContentRecord& content, std::string what);

/// The head of a document. Throws InputError when it is damaged, gone, or not that of the content.
StoredHead read_head(const store::ByteStore& from, const ContentRecord& content, const std::string& what);

}  // namespace winnow::documents
