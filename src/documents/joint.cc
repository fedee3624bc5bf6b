// SPDX-License-Identifier: Apache-2.0
#include "documents/joint.h"

#include <algorithm>

#include "base/as_size.h"
#include "engine/layers.h"

namespace winnow::documents {

namespace {

/// Reads from document `i`. Converts InputError to UnreadableError.
template <class Read>
LayerPart read_from(const Joint& joint, int i, const Read& read) {
  try {
    return read(joint.document(i));
  } catch (const InputError& error) {
    throw UnreadableError(error, i);
  }
}

int rows_of(const std::vector<TokenRange>& stretches) {
  int rows = 0;
  for (const auto& s : stretches) rows += s.end - s.begin;
  return rows;
}

}  // namespace

Joint::Joint(std::span<const std::shared_ptr<const Document>> documents, const model::Hparams& hparams)
    : documents_(documents.begin(), documents.end()), offsets_{0}, hparams_(&hparams) {
  for (const auto& document : documents_) offsets_.push_back(offsets_.back() + document->tokens());
}

int Joint::document_of(int position) const {
  return static_cast<int>(std::upper_bound(offsets_.begin(), offsets_.end(), position) - offsets_.begin()) - 1;
}

std::vector<std::int32_t> Joint::token_ids() const {
  std::vector<std::int32_t> out;
  for (const auto& document : documents_) {
    const auto& tokens = document->head().saved.transcript.tokens;
    out.insert(out.end(), tokens.begin(), tokens.begin() + document->tokens());
  }
  return out;
}

std::int32_t Joint::token_id(int position) const {
  const int i = document_of(position);
  return document(i).head().saved.transcript.tokens[position - offset(i)];
}

bool Joint::has_compressed() const {
  return std::any_of(documents_.begin(), documents_.end(), [](const auto& d) { return d->is_compressed(); });
}

TokenRanges Joint::everything() const {
  TokenRanges out;
  for (const auto& document : documents_) out.push_back({{0, document->tokens()}});
  return out;
}

TokenRanges Joint::edges() const {
  TokenRanges out;
  for (int i = 0; i < count(); ++i) {
    const auto blocks = layout(i);
    auto& of = out.emplace_back();
    of.push_back({0, blocks.end(0)});
    if (blocks.local() > 0) of.push_back({blocks.begin(blocks.first_local()), blocks.tokens});
  }
  return out;
}

std::vector<std::int32_t> positions_of(const Joint& joint, const TokenRanges& stretches) {
  std::vector<std::int32_t> out;
  for (int i = 0; i < joint.count(); ++i) {
    for (const auto& s : stretches[i]) {
      for (int token = s.begin; token < s.end; ++token) out.push_back(joint.offset(i) + token);
    }
  }
  return out;
}

TokenRanges ranges_of(const Joint& joint, std::span<const std::int32_t> positions) {
  TokenRanges out(as_size(joint.count()));
  for (const auto position : positions) {
    const int i = joint.document_of(position);
    auto& of = out[i];
    const int token = position - joint.offset(i);
    if (!of.empty() && of.back().end == token) {
      ++of.back().end;
    } else {
      of.push_back({token, token + 1});
    }
  }
  return out;
}

JointScratch::JointScratch(MemoryAccount& account, ElementType type, const Joint& joint, int capacity, KeyPlaces places)
    : joint_(joint), places_(places), scratch_(account, type, engine::kv_heads_of(joint.hparams()), capacity) {
  for (const auto& kind : joint.hparams().kinds) {
    auto& of_kind = angles_.emplace_back(as_size(joint.count()));
    for (int i = 0; i < joint.count(); ++i) {
      if (places == KeyPlaces::raw || joint.offset(i) == 0) continue;
      of_kind[i].resize(as_size(kind.rope.rotated_dims()));
      kind.rope.angles(joint.offset(i), of_kind[i].data());
    }
  }
}

void JointScratch::begin_layer(int layer) {
  layer_ = layer;
  scratch_.begin_layer(engine::kv_heads_of(joint_.hparams().layer(layer)));
}

void JointScratch::load(int layer, const TokenRanges& stretches) {
  begin_layer(layer);
  append(layer, stretches);
  loaded_ = scratch_.size();
}

int JointScratch::append(int layer, const TokenRanges& stretches) {
  const int first = scratch_.extend(positions_of(joint_, stretches));
  int row = first;
  for (int i = 0; i < joint_.count(); ++i) {
    const auto& of = stretches[i];
    if (of.empty()) continue;
    load_part(read_from(joint_, i, [&](const Document& d) { return d.read(layer, of); }), i, row);
    row += rows_of(of);
  }
  return first;
}

void JointScratch::load_part(const LayerPart& part, int document, int row) {
  const auto dim = as_size(scratch_.head_dim());
  std::vector<float> keys(as_size(scratch_.kv_heads()) * dim);
  std::vector<float> values(keys.size());
  for (const auto& heads : part.stretches) {
    for (int entry = 0; entry < heads.front().keys.count; ++entry, ++row) {
      for (std::size_t head = 0; head < heads.size(); ++head) {
        cache::decode_row(heads[head].keys.type, heads[head].keys.row(entry), std::span(keys).subspan(head * dim, dim));
        cache::decode_row(heads[head].values.type, heads[head].values.row(entry),
                          std::span(values).subspan(head * dim, dim));
      }
      move(document, keys);
      scratch_.store(row, keys.data(), values.data());
    }
  }
}

void JointScratch::move(int document, std::span<float> keys) {
  const auto& hparams = joint_.hparams();
  const auto& angles = angles_[hparams.kind_of[layer_]][document];
  if (angles.empty()) return;
  for (std::size_t at = 0; at < keys.size(); at += as_size(scratch_.head_dim()))
    hparams.layer(layer_).rope.rotate(keys.data() + at, angles.data());
}

std::vector<std::vector<std::int32_t>> JointScratch::load_all(int layer) {
  begin_layer(layer);
  const auto heads = as_size(scratch_.kv_heads());
  const auto dim = as_size(scratch_.head_dim());
  const auto width = heads * dim;
  std::vector<std::vector<std::int32_t>> kept(heads);
  scratch_.extend(positions_of(joint_, joint_.everything()));
  loaded_ = scratch_.size();
  for (int i = 0; i < joint_.count(); ++i) {
    const int tokens = joint_.document(i).tokens();
    std::vector<float> keys(as_size(tokens) * width);
    std::vector<float> values(keys.size());
    const auto part = read_from(joint_, i, [&](const Document& d) { return d.read_all(layer); });
    for (const auto& stretch : part.stretches) {
      for (std::size_t head = 0; head < heads; ++head) {
        const auto& lane = stretch[head];
        for (int entry = 0; entry < lane.keys.count; ++entry) {
          const int token = lane.positions[entry];
          const std::size_t at = as_size(token) * width + head * dim;
          cache::decode_row(lane.keys.type, lane.keys.row(entry), std::span(keys).subspan(at, dim));
          cache::decode_row(lane.values.type, lane.values.row(entry), std::span(values).subspan(at, dim));
          kept[head].push_back(joint_.offset(i) + token);
        }
      }
    }
    move(i, keys);
    for (int token = 0; token < tokens; ++token)
      scratch_.store(joint_.offset(i) + token, keys.data() + as_size(token) * width,
                     values.data() + as_size(token) * width);
  }
  for (auto& rows : kept) std::sort(rows.begin(), rows.end());
  return kept;
}

std::int32_t JointScratch::rows_below(std::int32_t end) const {
  const auto rows = scratch_.positions().first(as_size(loaded_));
  return static_cast<std::int32_t>(std::lower_bound(rows.begin(), rows.end(), end) - rows.begin());
}

bool JointScratch::holds(std::int32_t position) const {
  const auto row = rows_below(position);
  return row < loaded_ && scratch_.positions()[row] == position;
}

void JointScratch::gather(cache::Rows (cache::LayerScratch::*of)(int) const, int row, std::span<float> out) const {
  const auto dim = as_size(scratch_.head_dim());
  for (int head = 0; head < scratch_.kv_heads(); ++head) {
    const auto rows = (scratch_.*of)(head);
    cache::decode_row(rows.type, rows.row(row), out.subspan(as_size(head) * dim, dim));
  }
}

}  // namespace winnow::documents
