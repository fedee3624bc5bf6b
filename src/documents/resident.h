// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "documents/ingest.h"

namespace winnow::documents {

/// A document in this process's memory. Must not outlive the session that read it.
std::shared_ptr<const Document> resident(Ingested document);

}  // namespace winnow::documents
