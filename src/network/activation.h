// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml.h>

#include "model/architecture.h"

namespace winnow::network {

/// Input of the last product of a feed-forward block or expert. `gate` and `up` have the same shape; `gate` is null for
/// activations without a gate.
ggml_tensor* activated(ggml_context* context, model::Activation activation, ggml_tensor* gate, ggml_tensor* up);

}  // namespace winnow::network
