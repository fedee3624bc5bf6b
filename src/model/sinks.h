// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "model/hparams.h"

namespace winnow::model {

class TensorLoader;

/// Reads blk.N.attn_sinks.weight [H_q] of every layer, where the network has learnt attention sinks. Throws ModelError:
/// a tensor is missing, has another shape or type, or holds what is no number.
void read_sinks(TensorLoader& loader, Hparams& hparams, const std::string& path);

}  // namespace winnow::model
