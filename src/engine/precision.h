// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "attention/attention.h"
#include "winnow/session.h"

/// Element types that follow from the precision of a session.
namespace winnow::engine {

/// The type that factors of attention are rounded to.
attention::ComputeType compute_type_of(Precision precision);

/// The type of a scratch: one that loses nothing which a lane would keep.
ElementType scratch_type(Precision precision, std::span<const CacheOptions> caches);

}  // namespace winnow::engine
