// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "winnow/ask.h"
#include "winnow/documents.h"

namespace winnow::documents {

/// A time as 2026-01-31T12:00:00Z.
std::string utc(DocumentInfo::Time time);
/// `added`, `replaced` or `unchanged`.
const char* name_of(AddedDocument::Outcome outcome);
/// What is known of a document, for programs.
nlohmann::ordered_json document_json(const DocumentInfo& document);
/// The same, with what adding it came to.
nlohmann::ordered_json added_json(const AddedDocument& added);
/// What was kept and recomputed for a question over documents, and the milliseconds of each stage.
nlohmann::ordered_json asked_json(const Asked& asked);

}  // namespace winnow::documents
