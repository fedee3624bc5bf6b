// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/file.h"
#include "cache/lanes_file.h"
#include "engine/saved.h"
#include "winnow/error.h"
#include "winnow/saved.h"

namespace winnow {

namespace {

/// Lengths of lanes over all layers.
struct Lengths {
  int least = 0;
  int most = 0;
  std::int64_t sum = 0;
  int lanes = 0;

  void add(int length) {
    least = lanes == 0 ? length : std::min(least, length);
    most = std::max(most, length);
    sum += length;
    ++lanes;
  }
  double mean() const { return lanes == 0 ? 0 : static_cast<double>(sum) / lanes; }
};

/// Verifies the checksums after the head's. Returns a description of the damage, or an empty text.
std::string read_layers(const cache::SectionReader& reader, const engine::SavedHead& head, Lengths& lengths) {
  std::string damage;
  const auto verified = [&](int section, const std::string& what) {
    try {
      reader.verify(section, what);
      return true;
    } catch (const InputError& error) {
      if (damage.empty()) damage = error.what();
      return false;
    }
  };
  for (int layer = 0; layer < head.model.layers; ++layer) {
    if (!verified(engine::layer_section(layer), fmt::format("layer {}", layer))) continue;
    ByteCursor contents = reader.section(engine::layer_section(layer));
    for (const int length : cache::saved_lengths(contents, head.model.of_layer(layer).kv_heads)) {
      if (head.model.counts(layer)) lengths.add(length);
    }
  }
  verified(reader.count() - 1, "its logits");
  return damage;
}

}  // namespace

SavedInfo describe_saved(const std::string& path) {
  const FileSource file(path);
  const cache::SectionReader reader(file, engine::kSavedFormat);
  if (reader.count() == 0) throw InputError(fmt::format("{} is damaged: it has no sections", path));
  reader.verify(0, "its head");
  ByteCursor contents = reader.section(0);
  const auto head = engine::SavedHead::read(contents, reader.count());
  Lengths lengths;
  SavedInfo info;
  info.damage = read_layers(reader, head, lengths);
  info.path = path;
  info.version = static_cast<int>(engine::kSavedFormat.version);
  info.cache = head.options;
  info.model_name = head.model.name;
  info.model_arch = head.model.arch;
  info.model_hash = head.model.file;
  info.n_layer = head.model.layers;
  info.n_head_kv = head.model.of_layer(0).kv_heads;
  info.head_dim = head.model.of_layer(0).head_dim;
  for (int layer = 0; layer < head.model.layers; ++layer) {
    const auto& heads = head.model.of_layer(layer);
    info.layers.push_back({heads.kv_heads * heads.group, heads.kv_heads, heads.head_dim, heads.window});
  }
  info.tokens_seen = head.seen;
  info.transcript = head.transcript;
  info.entries_per_head_mean = lengths.mean();
  info.entries_min = lengths.least;
  info.entries_max = lengths.most;
  info.bytes = file.size();
  return info;
}

bool is_saved(const std::string& path) {
  try {
    return begins_with(path, engine::kSavedFormat.kind().beginning);
  } catch (const InputError&) {
    return false;
  }
}

}  // namespace winnow
