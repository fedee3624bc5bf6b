// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "winnow/documents.h"

namespace winnow::cli {

/// A time as 2026-01-31T12:00:00Z.
std::string utc(DocumentInfo::Time time);
/// What is known of a document, for programs.
nlohmann::ordered_json document_json(const DocumentInfo& document);
/// JSON on stdout.
void write_json(const nlohmann::ordered_json& json);

}  // namespace winnow::cli
