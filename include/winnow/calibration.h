// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "winnow/export.h"
#include "winnow/prompt.h"
#include "winnow/session.h"

namespace winnow {

struct WINNOW_EXPORT CalibrateOptions {
  int tokens = 50000;                        ///< maximum number of tokens to read
  PromptFormat format = PromptFormat::chat;  ///< of the prompts that the calibration is for

  /// Throws UsageError if `tokens` is not positive.
  void check() const;
};

/// Result of calibrate().
struct Calibrated {
  int tokens = 0;
  int passages = 0;
  /// [layer without a window] Share of the log scores' variance explained by the prediction, mean over KV heads.
  std::vector<double> explained;
};

/// Reads passages spread evenly over a text and writes a calibration of the model for SessionOptions::calibration. An
/// existing file at `path` is replaced only when the new one is on disk. Throws InputError for a text that is too
/// short, a full disk, missing permission, or a file of another kind at `path`; UsageError if all layers of the model
/// have windows; MemoryError and Interrupted as Session does.
WINNOW_EXPORT Calibrated calibrate(Session& session, const std::string& text, const std::string& path,
                                   const CalibrateOptions& options = {});

/// Throws InputError if calibrate() would, as far as that is known without writing.
WINNOW_EXPORT void check_calibration_path(const std::string& path);

}  // namespace winnow
