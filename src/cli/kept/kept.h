// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/kept/text_identity.h"

namespace winnow::cli {

/// Contents of a file of `winnow run --dump-kept`: which positions of a prompt each KV head of each layer has kept.
struct Kept {
  std::string spec;  ///< printable
  int n_prompt = 0;
  std::optional<TextIdentity> text;                            ///< files of earlier versions do not have it
  std::vector<std::vector<std::vector<std::int32_t>>> layers;  ///< [layer][KV head] positions, ascending
  std::vector<int> windows;  ///< [layer] tokens that it sees; 0: all. Empty: no layer has a window

  int heads() const { return static_cast<int>(layers.front().size()); }
  /// Whether a method has chosen what a layer keeps: not where a window says it.
  bool is_chosen(std::size_t layer) const { return windows.empty() || windows[layer] == 0; }
  /// Layers of which that is so; where all have windows, all.
  std::vector<std::size_t> chosen() const;
  /// In these layers.
  std::size_t entries() const;
};

/// Reads and checks such a file. Throws InputError with what is wrong and where.
Kept read_kept(const std::string& path);

/// The share of each of `bins` equal parts of the prompt that one head has kept, 0 … 1. REQUIRES: 1 <= bins <=
/// n_prompt.
std::vector<double> densities(const std::vector<std::int32_t>& positions, int n_prompt, int bins);

}  // namespace winnow::cli
