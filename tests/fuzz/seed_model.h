// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "support/tiny_gguf.h"
#include "winnow/model.h"

namespace winnow::test {

/// The model of the fuzzer's saved caches. Its file is deleted but stays mapped.
inline std::shared_ptr<const Model> seed_model() {
  TinyModel tiny;
  tiny.n_layer = 1;
  tiny.chat_template = "chatml";
  const auto path = std::filesystem::temp_directory_path() / ("winnow-seed-" + std::to_string(getpid()) + ".gguf");
  write_tiny_gguf(tiny, path.string());
  auto model = Model::load(path.string());
  std::filesystem::remove(path);
  return model;
}

}  // namespace winnow::test
