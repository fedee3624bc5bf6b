// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace winnow::hub {

/// How far the download of a file is.
struct Progress {
  std::string file;       ///< its path in the repository
  std::size_t bytes = 0;  ///< that are there, those of an earlier try included; as many as `total`: it is checked
  std::size_t total = 0;  ///< 0: not known yet
};

struct FetchOptions {
  bool offline = false;  ///< uses no network, only what is in the cache
  /// Called as a download goes on. An exception ends the download, and the next call goes on from there.
  std::function<void(const Progress&)> on_progress = [](const Progress&) {};
};

/// Path of the model that `name`, USER/REPO[:QUANT], means in the hub's cache; of the first part, if it has several.
/// Downloads a file that is not there; each gets its name in the cache when its checksum is right. Without a
/// network, the model in the cache is used, with a warning. Without a quant it is llama.cpp's choice: Q4_K_M, else
/// Q8_0, else the first. The environment names the hub (MODEL_ENDPOINT or HF_ENDPOINT), its cache (HF_HUB_CACHE,
/// HF_HOME and others, as llama.cpp has them) and a token (HF_TOKEN).
/// Throws UsageError for a name or an address that is none, ModelError for what cannot be had, and what `on_progress`
/// throws.
std::string fetch(const std::string& name, const FetchOptions& options);

}  // namespace winnow::hub
