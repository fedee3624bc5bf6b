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

/// How a request's cache is kept.
struct Keeping {
  CacheOptions keep;
  Protocol protocol = Protocol::aware;
  std::optional<std::string> session = {};  ///< which the request goes on with
  std::vector<std::string> documents = {};  ///< that are asked, by name; `keep` is then how `ask` keeps them
  AskOptions ask = {};
};

/// Reads `kv`, `budget` and `kv_type` of an object `winnow`. A budget without a method, where the default is full, is
/// one for `auto`. Throws ApiError for what cannot be, with the sentence that the command would print.
CacheOptions read_cache(Fields& fields, const CacheChoice& defaults, Protocol protocol);

/// Throws ApiError, with the nearest name, for a field that nobody has asked for.
void refuse_unknown(const Fields& fields);

/// Reads the object `winnow` of a request. Throws ApiError: an unknown name in it with the nearest one, what cannot be
/// with the sentence that the command would print, what is not there yet. `session` is the one that a header names;
/// empty: none does.
Keeping read_keeping(Fields& fields, const RequestDefaults& defaults, const std::string& session);

}  // namespace winnow::server
