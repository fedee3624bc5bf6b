// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cli/model_source.h"

namespace winnow::cli {

/// Options of `winnow inspect --kept`.
struct KeptOptions {
  std::string file;
  std::string text;
  ModelSource model;
  std::string system;
  std::string output;
  bool raw = false;
};

void show_kept(const KeptOptions& options);

}  // namespace winnow::cli
