// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/hparams.h"

namespace winnow::model {

class TensorLoader;

/// Reads blk.N.attn_sinks.weight [H_q] of every layer if the network has learnt attention sinks. Throws ModelError if a
/// tensor is missing, has another shape or type, or has values that are not finite.
void read_sinks(TensorLoader& loader, Hparams& hparams, const std::string& path);

}  // namespace winnow::model
