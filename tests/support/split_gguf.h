// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gguf.h>

#include <functional>
#include <string>
#include <vector>

namespace winnow::test {

/// How to split a model into parts, as llama.cpp's gguf-split does.
struct Split {
  int parts = 3;
  bool keys_alone = false;  ///< the first part has no tensors
  /// Called for each part, from 0, before it is written.
  std::function<void(int part, gguf_context*)> edit = [](int, gguf_context*) {};
};

/// Writes the parts of a GGUF as PREFIX-00001-of-0000N.gguf and so on. Returns their paths. Throws std::runtime_error
/// if a file cannot be read or written.
std::vector<std::string> split_gguf(const std::string& from, const std::string& prefix, const Split& how = {});

}  // namespace winnow::test
