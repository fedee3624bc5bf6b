// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "arrays.h"
#include "winnow/policy/method.h"

namespace winnow::python {

/// The view of one layer for score() of a method in Python. Arrays are made when they are asked for, and belong to
/// whoever has them. After score() has returned there is nothing to see: UsageError.
class Layer {
 public:
  using Attention = policy::Seen<attention::Observation>;

  /// `attention`: what the method observes of it; none: nothing.
  Layer(const policy::LayerView& view, std::optional<Attention> attention) : view_(&view), attention_(attention) {}

  void end() { view_ = nullptr; }
  const policy::LayerView& view() const;
  /// f32, rotated to the tokens' positions, [H_kv][n][d].
  Cube keys() const;
  Cube values() const;
  /// [H_q][n]. Throws UsageError when the method observes nothing.
  Rows attention() const;

 private:
  const policy::LayerView* view_;
  std::optional<Attention> attention_;
};

}  // namespace winnow::python
