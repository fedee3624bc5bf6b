// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "server/openai/fields.h"
#include "server/options.h"
#include "winnow/ask.h"
#include "winnow/recommended.h"

namespace winnow::server {

/// Cache options of a request.
struct Keeping {
  CacheOptions keep;
  Protocol protocol = Protocol::aware;
  std::optional<std::string> conversation = {};  ///< name of the stored conversation that the request continues
  std::vector<std::string> documents = {};  ///< names of the documents to ask; `keep` then has the options of `ask`
  AskOptions ask = {};
};

/// Reads `kv`, `budget` and `kv_type` of an object `winnow`. A budget without a method means `auto` if the default
/// method is full. Throws ApiError for invalid options, with the command's error message.
CacheOptions read_cache(Fields& fields, const CacheChoice& defaults, Protocol protocol);

/// Throws ApiError, with the nearest name, for an unknown field.
void refuse_unknown(const Fields& fields);

/// Reads the object `winnow` of a request. Throws ApiError for an unknown field (with the nearest name), for invalid
/// options (with the command's error message), and for missing features. `session` is the header's session; empty:
/// none.
Keeping read_keeping(Fields& fields, const RequestDefaults& defaults, const std::string& session);

}  // namespace winnow::server
