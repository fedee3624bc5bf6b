// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace winnow::hub {

/// Progress of a download.
struct Progress {
  std::string file;       ///< path in the repository
  std::size_t bytes = 0;  ///< downloaded, including earlier tries; if equal to `total`, the file is being checked
  std::size_t total = 0;  ///< 0: not known yet
};

struct FetchOptions {
  bool offline = false;  ///< uses only the cache
  /// Called during a download. An exception stops the download, and the next call continues it.
  std::function<void(const Progress&)> on_progress = [](const Progress&) {};
};

/// Path in the hub's cache of the model `name`, USER/REPO[:QUANT]; of its first part if it has several. Downloads
/// missing files; each gets its name in the cache after its checksum was verified. Without a network, uses the model in
/// the cache, with a warning. Without a quant, chooses like llama.cpp: Q4_K_M, else Q8_0, else the first. The
/// environment sets the hub (MODEL_ENDPOINT or HF_ENDPOINT), its cache (HF_HUB_CACHE, HF_HOME and others, as in
/// llama.cpp) and a token (HF_TOKEN). Throws UsageError for an invalid name or address, ModelError for a model that
/// cannot be fetched, and what `on_progress` throws.
std::string fetch(const std::string& name, const FetchOptions& options);

}  // namespace winnow::hub
