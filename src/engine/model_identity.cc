// SPDX-License-Identifier: Apache-2.0
#include "engine/model_identity.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/hash.h"
#include "engine/model_impl.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

/// Markers in place of a model's heads. After the first, the heads of each layer follow; after the second, the heads
/// and the window of each layer.
constexpr SavedHeads kHeadsDiffer{};
constexpr SavedHeads kWindows{-1, -1, -1};

void put_heads(ByteSink& to, const SavedHeads& heads) {
  for (const auto number : {heads.kv_heads, heads.group, heads.head_dim}) put(to, number);
}

std::int32_t take_count(ByteCursor& from) {
  const auto count = from.take<std::int32_t>("the model's shape");
  if (count < 1) from.fail(fmt::format("the model's shape has a {}, expected 1 or more", count));
  return count;
}

SavedHeads read_heads(ByteCursor& from) {
  SavedHeads heads;
  for (auto* const number : {&heads.kv_heads, &heads.group, &heads.head_dim})
    *number = from.take<std::int32_t>("the model's shape");
  return heads;
}

/// The heads of each layer of a model whose layers differ.
std::vector<SavedHeads> read_layers_heads(ByteCursor& from, std::int32_t layers, const SavedHeads& marker) {
  const bool windows = marker == kWindows;
  const std::size_t bytes = (windows ? 4 : 3) * sizeof(std::int32_t);
  if (as_size(layers) > from.left() / bytes)
    from.fail(fmt::format("the heads of {} layers do not fit in the {} bytes left", layers, from.left()));
  std::vector<SavedHeads> out(layers);
  for (auto& heads : out) {
    heads = read_heads(from);
    if (windows) heads.window = from.take<std::int32_t>("a layer's window");
  }
  return out;
}

constexpr std::int32_t kMostHeads = 1 << 15;  ///< limit of each dimension, so that products do not overflow

void check_heads(const SavedHeads& heads, const ByteCursor& from) {
  for (const auto number : {heads.kv_heads, heads.group, heads.head_dim}) {
    if (number < 1 || number > kMostHeads)
      from.fail(fmt::format("the model's shape has a {}, expected 1 to {}", number, kMostHeads));
  }
  if (heads.window < 0) from.fail(fmt::format("a layer's window is {}, expected 0 or more", heads.window));
}

std::vector<SavedHeads> heads_of(const model::Hparams& hparams) {
  std::vector<SavedHeads> heads;
  for (int layer = 0; layer < hparams.n_kv_layer; ++layer) {
    const auto& spec = hparams.layer(layer);
    heads.push_back({spec.n_head_kv, spec.group(), spec.head_dim, spec.window});
  }
  const bool uniform =
      std::all_of(heads.begin(), heads.end(), [&](const auto& h) { return h == heads.front() && h.window == 0; });
  if (uniform) heads.resize(1);
  return heads;
}

}  // namespace

int ModelIdentity::first_global() const {
  for (int layer = 0; layer < layers; ++layer) {
    if (of_layer(layer).window == 0) return layer;
  }
  return 0;
}

void ModelIdentity::write(ByteSink& to) const {
  put(to, std::string_view(name));
  put(to, std::string_view(arch));
  put(to, file);
  put(to, rope);
  const bool windows = std::any_of(heads.begin(), heads.end(), [](const auto& h) { return h.window > 0; });
  const bool uniform = heads.size() == 1 && !windows;
  put(to, layers);
  put_heads(to, uniform ? heads.front() : windows ? kWindows : kHeadsDiffer);
  put(to, vocabulary);
  for (int layer = 0; layer < layers && !uniform; ++layer) {
    put_heads(to, of_layer(layer));
    if (windows) put(to, of_layer(layer).window);
  }
}

ModelIdentity ModelIdentity::read(ByteCursor& from) {
  ModelIdentity model;
  model.name = from.text("the model's name");
  model.arch = from.text("the model's architecture");
  model.file = from.take<std::uint64_t>("the model's hash");
  model.rope = from.take<std::uint64_t>("the hash of its RoPE");
  model.layers = take_count(from);
  model.heads = {read_heads(from)};
  model.vocabulary = take_count(from);
  const SavedHeads first = model.heads.front();
  if (first == kWindows || first == kHeadsDiffer) model.heads = read_layers_heads(from, model.layers, first);
  for (const auto& heads : model.heads) check_heads(heads, from);
  return model;
}

ModelIdentity identity_of(const model::Hparams& hparams, std::uint64_t file_hash) {
  Hasher rope;
  for (const auto& kind : hparams.kinds) {
    rope.add(std::as_bytes(std::span(kind.rope.frequency)));
    rope.add(std::as_bytes(std::span(&kind.rope.magnitude, 1)));
  }
  return {hparams.name,       std::string(hparams.architecture->name),
          file_hash,          rope.value(),
          hparams.n_kv_layer, heads_of(hparams),
          hparams.n_vocab};
}

ModelIdentity identity_of(const Model& model) { return identity_of(hparams_of(model), model.hash()); }

void check_model(const ModelIdentity& saved, const ModelIdentity& model, const std::string& what) {
  if (saved == model) return;
  const auto name = [](const ModelIdentity& m) {
    return fmt::format("{} ({}, hash {:016x})", m.name.empty() ? "unnamed" : m.name, m.arch, m.file);
  };
  if (saved.file != model.file)
    throw InputError(fmt::format("{} was saved with the model {}, not with {}", what, name(saved), name(model)));
  if (saved.rope != model.rope) {
    throw InputError(
        fmt::format("{} was saved with other RoPE frequencies of the model {} (hash {:016x}, now {:016x}): give the "
                    "same RoPE options",
                    what, name(model), saved.rope, model.rope));
  }
  throw InputError(fmt::format("{} is damaged: its shape differs from that of its model {}", what, name(model)));
}

}  // namespace winnow::engine
