// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "attention/device/layer_step.h"
#include "attention/device/step_context.h"

namespace winnow::attention::device {

/// All layers of a step whose tensors are in the device's memory: one copy to the device before the first layer, one
/// back after the last. New rows are stored in the copies of lanes by kernels, and kept for the host's lanes. REQUIRES:
/// nothing is rotated.
class WholeStep final : public DeviceStep {
 public:
  explicit WholeStep(StepContext& context) : context_(context), arrays_(context.device) {}

  void begin(int rows) override;
  void plan(const Shape& shape, const Rope& rope, std::span<const DecodeRead> reads,
            std::span<const EnteredRow> entered, const StepTensors& tensors) override;
  void upload() override;
  bool attend(int layer) override;
  std::optional<int> finish(const std::function<void(int layer, const NewRows& rows)>& take) override;

 private:
  struct Layer {
    LayerStep step;
    StepTensors tensors;
    std::vector<EnteredRow> entered;
    std::size_t runs = 0;  ///< offset of StoredRun [2][entered]: keys, then values
    std::size_t kept = 0;  ///< offset of StoredRun [2]: keys and values of all rows
    std::size_t rows = 0;  ///< offset of both in the work space
    bool is_left = false;  ///< to the host
    bool is_done = false;  ///< queued, and not taken yet

    bool has_rows() const { return !is_left && !entered.empty(); }
  };

  /// Leaves all layers to the host.
  void leave();
  /// Elements of the keys of a layer's new rows, and of the values.
  std::size_t elements(const Layer& layer) const;
  void place();
  void address(Layer& layer);
  bool store(const Layer& layer, int number);
  /// Stores `count` rows by the runs at an offset.
  bool store(const Layer& layer, std::size_t runs, std::size_t count, winnow::device::Element element);

  StepContext& context_;
  StepArrays arrays_;
  int rows_ = 0;
  std::vector<Layer> layers_;
  std::size_t bad_ = 0;      ///< offset of [layers] flags
  std::size_t end_ = 0;      ///< of what is copied to the host
  std::size_t partial_ = 0;  ///< states of a layer's items
  std::vector<std::byte> on_host_;
};

}  // namespace winnow::attention::device
