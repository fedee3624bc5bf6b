// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/policy/layer.h"
#include "winnow/policy/observer.h"

/// A calibration has facts about a model that methods go by. A method brings along what finds its facts out: `winnow
/// calibrate` shows passages of a text to the calibrators of all methods, and writes what they have found to a file.
namespace winnow::policy {

/// First tokens of a passage that calibrators leave out: they are unlike all others.
inline constexpr int kUnlikeOthers = 4;

/// The size of a layer without a window. Layers that read the keys of another one are as large.
struct CalibratedLayer {
  int query_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int input_dim = 0;  ///< n_embd
};

/// Finds out numbers about one layer, and those that read its keys: sees one passage after the other.
class WINNOW_EXPORT Calibrator : public Observer {
 public:
  /// Scores of the entries of the passage that has ended, by `kvzip:normalize=plus`.
  virtual void see_scores(const Scores& scores);
  /// Numbers that have been found. REQUIRES: some passages. Called once, when all have been seen.
  virtual std::vector<float> numbers() = 0;
  /// Share of the variance of the scores' logarithms that the numbers explain, where that is what they are for.
  /// REQUIRES: numbers() has been called.
  virtual std::optional<double> explained() const;
};

/// Facts about each layer that a method needs.
struct CalibrationPart {
  std::string name;  ///< of the numbers in the file; methods that need equal facts give them one name
  std::string text;  ///< for `winnow methods`
  /// Bytes that a calibrator holds until all passages have been seen.
  std::function<std::size_t(const CalibratedLayer&)> bytes;
  std::function<std::unique_ptr<Calibrator>(const CalibratedLayer&)> calibrator;
};

/// Facts that a calibrator T finds out, which is made of its layer's size, and says by T::bytes(layer) what it holds.
template <class T>
CalibrationPart calibrated_by(std::string name, std::string text) {
  return {std::move(name), std::move(text), [](const CalibratedLayer& layer) { return T::bytes(layer); },
          [](const CalibratedLayer& layer) { return std::make_unique<T>(layer); }};
}

}  // namespace winnow::policy
