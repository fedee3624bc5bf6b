// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hf-cache.h>

#include <string>
#include <vector>

namespace winnow::hub {

/// The files of one model, in the order of its parts.
struct Choice {
  hf_cache::hf_files parts;
  int count = 1;  ///< parts that it has by its name; fewer may be there

  bool is_complete() const { return static_cast<int>(parts.size()) == count; }
};

/// The model that llama.cpp takes of these files: the first whose path has the quant, in any case and before a dot or a
/// dash. Without a quant: Q4_K_M, else Q8_0, else the first model. No parts: there is none.
/// llama.cpp finds it by regular expressions, whose depth grows with names that others have chosen.
Choice choose(const hf_cache::hf_files& files, const std::string& quant);

/// The quants of the models among these files, each once.
std::vector<std::string> quants_of(const hf_cache::hf_files& files);

}  // namespace winnow::hub
