// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server/openai/fields.h"
#include "server/options.h"

namespace winnow::server {

/// How a request's cache is kept.
struct Keeping {
  CacheOptions keep;
  Protocol protocol = Protocol::aware;
};

/// Reads the object `winnow` of a request. Throws ApiError: an unknown name in it with the nearest one, what cannot be
/// with the sentence that the command would print, what is not there yet.
Keeping read_keeping(Fields& fields, const RequestDefaults& defaults);

}  // namespace winnow::server
