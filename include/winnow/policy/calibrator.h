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

/// A calibration contains facts about a model that some methods need. Such a method provides the calibrator of its
/// facts: `winnow calibrate` shows passages of a text to the calibrators of all methods, and writes their results to a
/// file.
namespace winnow::policy {

/// Number of first tokens of a passage that calibrators skip, since they are unlike all others.
inline constexpr int kUnlikeOthers = 4;

/// Sizes of a layer without a window, which are also those of the layers that share its keys and values.
struct CalibratedLayer {
  int query_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int input_dim = 0;  ///< n_embd
};

/// Computes numbers about a layer and its KV-sharing layers from one passage after the other.
class WINNOW_EXPORT Calibrator : public Observer {
 public:
  /// Called at the end of a passage with its scores by `kvzip:normalize=plus`.
  virtual void see_scores(const Scores& scores);
  /// Returns the results. REQUIRES: at least one passage. Called once, after all passages.
  virtual std::vector<float> numbers() = 0;
  /// Share of the log scores' variance that the numbers explain; empty if they do not predict scores. REQUIRES:
  /// numbers() has been called.
  virtual std::optional<double> explained() const;
};

/// Calibration facts that a method needs, for each layer.
struct CalibrationPart {
  std::string name;  ///< name of the numbers in the file; methods that need equal facts use the same name
  std::string text;  ///< description for `winnow methods`
  /// Bytes that a calibrator holds until the last passage.
  std::function<std::size_t(const CalibratedLayer&)> bytes;
  std::function<std::unique_ptr<Calibrator>(const CalibratedLayer&)> calibrator;
};

/// Facts found by a calibrator of class T, which is constructed from a layer's sizes and reports its memory as
/// T::bytes(layer).
template <class T>
CalibrationPart calibrated_by(std::string name, std::string text) {
  return {std::move(name), std::move(text), [](const CalibratedLayer& layer) { return T::bytes(layer); },
          [](const CalibratedLayer& layer) { return std::make_unique<T>(layer); }};
}

}  // namespace winnow::policy
