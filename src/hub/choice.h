// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <hf-cache.h>

#include <string>
#include <vector>

namespace winnow::hub {

/// Files of a model, in the order of its parts.
struct Choice {
  hf_cache::hf_files parts;
  int count = 1;  ///< number of parts by its name; some may be missing

  bool is_complete() const { return static_cast<int>(parts.size()) == count; }
};

/// The model that llama.cpp would choose: the first whose path has the quant before a dot or dash, ignoring case.
/// Without a quant: Q4_K_M, else Q8_0, else the first model. Returns a choice without parts if there is no such model.
/// llama.cpp uses regular expressions, whose recursion grows with names from outside.
Choice choose(const hf_cache::hf_files& files, const std::string& quant);

/// Quants of the models among these files, without duplicates.
std::vector<std::string> quants_of(const hf_cache::hf_files& files);

}  // namespace winnow::hub
