// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "policy/observers/named.h"
#include "winnow/policy/method.h"

namespace winnow::python {

/// The view of one layer for score() of a method in Python. Arrays are made when they are asked for, and belong to
/// whoever has them. After score() has returned there is nothing to see: UsageError.
class Layer {
 public:
  using Attention = policy::Seen<attention::Observation>;

  /// A layer as a method looks at it.
  struct Observers {
    std::optional<Attention> attention;        ///< by `observe`
    std::vector<policy::AddedObserver> named;  ///< by `observers`
  };

  /// `observers` outlive it.
  Layer(const policy::LayerView& view, const Observers& observers) : view_(&view), observers_(&observers) {}

  void end() { view_ = nullptr; }
  const policy::LayerView& view() const;
  /// f32, rotated to the tokens' positions, [H_kv][n][d].
  Cube keys() const;
  Cube values() const;
  /// [H_q][n]. Throws UsageError when the method observes nothing.
  Rows attention() const;
  /// The result of an observer of the method: an array, or a dict of several. Throws UsageError for another's name.
  nb::object seen(const std::string& name) const;

 private:
  const policy::LayerView* view_;
  const Observers* observers_;
};

}  // namespace winnow::python
