// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/kept/text_identity.h"

namespace winnow::cli {

/// Contents of a file of `winnow run --dump-kept`: the positions of a prompt that each KV head of each layer keeps.
struct Kept {
  std::string spec;  ///< printable
  int n_prompt = 0;
  std::optional<TextIdentity> text;                            ///< missing in files of earlier versions
  std::vector<std::vector<std::vector<std::int32_t>>> layers;  ///< [layer][KV head] positions, ascending
  std::vector<int> windows;  ///< [layer] size of the window; 0: none. Empty: no layer has a window

  int heads() const { return static_cast<int>(layers.front().size()); }
  /// True if a method has chosen a layer's positions, false if its window determines them.
  bool is_chosen(std::size_t layer) const { return windows.empty() || windows[layer] == 0; }
  /// Layers whose positions a method has chosen; all layers if all have windows.
  std::vector<std::size_t> chosen() const;
  /// Entries in these layers.
  std::size_t entries() const;
};

/// Reads and checks such a file. Throws InputError that names the error and its place.
Kept read_kept(const std::string& path);

/// The share that one head keeps of each of `bins` equal parts of the prompt, 0 … 1. REQUIRES: 1 <= bins <= n_prompt.
std::vector<double> densities(const std::vector<std::int32_t>& positions, int n_prompt, int bins);

}  // namespace winnow::cli
