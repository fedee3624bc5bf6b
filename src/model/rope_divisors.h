// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>

#include <vector>

#include "device/device.h"
#include "model/hparams.h"

namespace winnow::model {

class TensorLoader;

/// Divides the frequencies of all kinds of layers by the file's factors: rope_freqs, or those for long or short texts.
/// Throws ModelError, and UsageError if the user selects factors that the file lacks.
void apply_rope_factors(TensorLoader& loader, Hparams& hparams, const std::string& path);

/// Divisors of the unscaled frequencies base^(-2i / D) for ggml, for each kind of layer. They express any scaling, so
/// ggml needs to know no scheme.
class RopeDivisors {
 public:
  /// `device` may be null.
  RopeDivisors(const Hparams& hparams, device::Device* device);

  /// Divisors of a kind, [pairs]; null: all are 1.
  ggml_tensor* of_kind(int kind) const { return tensors_[static_cast<std::size_t>(kind)]; }

 private:
  ggml_context_ptr context_;
  ggml_backend_buffer_ptr of_host_;
  device::DeviceMemory of_device_;
  std::vector<ggml_tensor*> tensors_;
};

}  // namespace winnow::model
