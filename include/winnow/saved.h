// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "winnow/export.h"
#include "winnow/model.h"
#include "winnow/session.h"

namespace winnow {

/// Description of a saved cache.
struct SavedInfo {
  std::string path;
  int version = 0;  ///< of the format
  CacheOptions cache;
  std::string model_name;  ///< GGUF's general.name, may be empty
  std::string model_arch;
  std::uint64_t model_hash = 0;
  int n_layer = 0;
  int n_head_kv = 0;  ///< of the first layer, as is head_dim; see `layers`
  int head_dim = 0;
  std::vector<LayerInfo> layers = {};  ///< [n_layer]
  int tokens_seen = 0;
  Transcript transcript;
  double entries_per_head_mean = 0;
  int entries_min = 0;  ///< over layers and KV heads
  int entries_max = 0;
  std::size_t bytes = 0;  ///< of the file
  std::string damage;     ///< the first checksum that fails; empty: none. Entries are then counted over intact layers.
};

/// Describes a file of Session::save() without a model, and verifies all checksums. Throws InputError if the file is
/// not a saved cache of this version, is truncated, or has a damaged description. Thread-safe.
WINNOW_EXPORT SavedInfo describe_saved(const std::string& path);

/// True if a file begins like a saved cache. Does not throw: false for unreadable files.
WINNOW_EXPORT bool is_saved(const std::string& path);

}  // namespace winnow
