// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "arrays.h"
#include "policy/observers/named.h"
#include "winnow/policy/method.h"

namespace winnow::python {

/// View of one layer for score() of a method in Python. Arrays are copied when they are requested. After score() has
/// returned, all functions throw UsageError.
class Layer {
 public:
  using Attention = policy::ResultPlace<attention::ColumnStatistics>;

  /// Observers of a method.
  struct Observers {
    std::optional<Attention> attention;        ///< requested by `observe`
    std::vector<policy::AddedObserver> named;  ///< requested by `observers`
  };

  /// `observers` outlive it.
  Layer(const policy::LayerView& view, const Observers& observers) : view_(&view), observers_(&observers) {}

  void end() { view_ = nullptr; }
  const policy::LayerView& view() const;
  /// f32, rotated to the tokens' positions, [H_kv][n][d].
  Cube keys() const;
  Cube values() const;
  /// [H_q][n]. Throws UsageError if the method observes nothing.
  Rows attention() const;
  /// The result of an observer of the method: an array, or a dict of several. Throws UsageError for any other name.
  nb::object seen(const std::string& name) const;

 private:
  const policy::LayerView* view_;
  const Observers* observers_;
};

}  // namespace winnow::python
