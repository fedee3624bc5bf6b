// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "attention/attention.h"
#include "winnow/session.h"

/// Element types that follow from the precision of a session.
namespace winnow::engine {

/// The type to which the factors of attention are rounded.
attention::ComputeType compute_type_of(Precision precision);

/// The type of a scratch: it loses nothing that a lane would keep.
ElementType scratch_type(Precision precision, std::span<const CacheOptions> caches);

}  // namespace winnow::engine
