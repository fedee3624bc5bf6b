// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

namespace winnow {

namespace device {
class Device;
}  // namespace device

/// Overrides for values of a model file, and where its network is computed.
struct ModelOptions {
  float rope_freq_base = 0;  ///< 0: from the file
  /// `none`, `linear:FACTOR`, `yarn:FACTOR[:TRAINED_CONTEXT]`; `longrope:short` or `longrope:long` for a file with
  /// factors for short and long texts (default: long if its context is longer than the trained one). Empty: from the
  /// file.
  std::string rope_scaling = {};
  /// Source of a Jinja chat template; empty: the file's.
  std::string chat_template = {};
  /// A ggml backend that holds the weights and computes the network; null: the CPU. Nothing is packed there, and a row
  /// of a step may differ in its last bits from what it would be alone.
  std::shared_ptr<device::Device> device = {};
};

}  // namespace winnow
