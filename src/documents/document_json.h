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
/// A document's info as JSON.
nlohmann::ordered_json document_json(const DocumentInfo& document);
/// The same, with the result of adding it.
nlohmann::ordered_json added_json(const AddedDocument& added);
/// Result of asking: numbers of kept and recomputed entries, and the milliseconds of each phase.
nlohmann::ordered_json asked_json(const Asked& asked);

}  // namespace winnow::documents
