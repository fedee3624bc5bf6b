// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "cache/scratch.h"
#include "model/hparams.h"
#include "network/executor.h"
#include "winnow/policy/method.h"

namespace winnow::engine {

/// Whether the method asks for them: it evicts something.
bool wants_output_lengths(const policy::Method& method, const policy::Terms& terms);

/// Of a layer's values; where other layers read them, too, what this layer's own output projection makes of them.
/// Throws MemoryError and Interrupted.
policy::OutputLengths output_lengths(network::Executor& executor, const model::Hparams& hparams, int layer,
                                     const cache::LayerScratch& scratch);

/// Bytes that this has in use at its peak, of a prompt of so many tokens.
std::size_t output_lengths_bytes(const model::Hparams& hparams, const model::LayerSpec& layer, int tokens);

}  // namespace winnow::engine
