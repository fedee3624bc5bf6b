// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/prompt.h"
#include "winnow/session.h"

namespace winnow {

struct WINNOW_EXPORT CalibrateOptions {
  int tokens = 50000;                        ///< of the text that are read at most
  PromptFormat format = PromptFormat::chat;  ///< of the prompts that the calibration is for

  /// Throws UsageError when there are none.
  void check() const;
};

/// Amount of text that was read, and how well scores can be predicted.
struct Calibrated {
  int tokens = 0;
  int passages = 0;
  /// [layers without a window] the share of the variance of the scores' logarithms that the rows which enter the layer
  /// explain, the mean over its KV heads.
  std::vector<double> explained;
};

/// Reads passages of a text, evenly spread over it, and writes to a file what methods need to know of the model
/// (SessionOptions::calibration): what was at `path` stays until all is on the disk. Throws InputError for a text that
/// is too short, a full disk, no permission, a file of another kind at that path; UsageError for a model whose layers
/// all have windows; MemoryError and Interrupted, as Session does.
WINNOW_EXPORT Calibrated calibrate(Session& session, const std::string& text, const std::string& path,
                                   const CalibrateOptions& options = {});

/// Throws InputError when calibrate() would, as far as can be known without writing.
WINNOW_EXPORT void check_calibration_path(const std::string& path);

}  // namespace winnow
