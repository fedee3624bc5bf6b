// SPDX-License-Identifier: Apache-2.0
#include "engine/decode.h"

#include <algorithm>

#include "base/as_size.h"
#include "engine/cache_bytes.h"
#include "engine/layers.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

bool needs_probabilities(const policy::Method& method) {
  return method.decoding.step && method.decoding.step_sees_attention;
}

int longest_lane(const Sequence& sequence) {
  int most = 0;
  for (int layer = 0; layer < sequence.layers(); ++layer) {
    if (sequence.counts(layer)) most = std::max(most, sequence.layer(layer).longest_lane());
  }
  return most;
}

}  // namespace

void Stepper::run(std::span<const StepRow> rows, std::span<float> logits) {
  for (int row = 0; row < static_cast<int>(rows.size()); row = end_of_sequence(rows, row)) {
    rows[row].sequence->reserve(end_of_sequence(rows, row) - row);
    rows[row].sequence->attended = 0;
  }
  if (step_rows_ == StepRows::together) return pass(rows, logits);
  for (int row = 0; row < static_cast<int>(rows.size()); row = end_of_sequence(rows, row)) {
    const auto own = rows.subspan(as_size(row), as_size(end_of_sequence(rows, row) - row));
    place_probabilities(own, places_of_probabilities(hparams_, attention_, own));  // allocates
  }
  pass_alike(rows, logits);
}

void Stepper::pass_alike(std::span<const StepRow> rows, std::span<float> logits) {
  const auto width = as_size(hparams_.n_vocab);
  auto without_logits = rows.size() - logits.size() / width;
  for (bool has_changed = false; !rows.empty(); has_changed = true) {
    const auto count = as_size(end_of_sequence(rows, 0));
    const auto passed_over = std::min(count, without_logits);
    const auto own = (count - passed_over) * width;
    try {
      pass(rows.first(count), logits.first(own));
    } catch (const MemoryError& error) {
      if (!has_changed) throw;
      throw Error(error.what());
    }
    without_logits -= passed_over;
    rows = rows.subspan(count);
    logits = logits.subspan(own);
  }
}

void Stepper::pass(std::span<const StepRow> rows, std::span<float> logits) {
  std::vector<Token> tokens;
  std::vector<std::int32_t> positions;
  for (const auto& row : rows) {
    tokens.push_back(row.token);
    positions.push_back(row.position);
  }
  const auto places = places_of_probabilities(hparams_, attention_, rows);
  const auto placed = place_probabilities(rows, places);
  LaneAttention attention(attention_, hparams_, rows, places, placed, probabilities_.as<float>().data(), calibration_);
  const bool one = end_of_sequence(rows, 0) == static_cast<int>(rows.size());
  bool has_changed = false;  // lanes
  try {
    executor_.step(one ? network::Rows::of_one_sequence : network::Rows::of_several, tokens, positions, attention,
                   logits);
    has_changed = true;
    attention.rethrow();
  } catch (const MemoryError& error) {
    if (!has_changed && !attention.is_planned()) throw;
    throw Error(error.what());
  }
  for (const auto& row : rows) {
    row.sequence->seen = row.position + 1;
    row.sequence->tokens.push_back(row.token);
  }
  for (int row = 0; row < static_cast<int>(rows.size()); row = end_of_sequence(rows, row))
    rows[row].sequence->end_step();
}

std::vector<RowProbabilities> Stepper::place_probabilities(std::span<const StepRow> rows, const LayerPlaces& places) {
  std::vector<RowProbabilities> out;
  std::ptrdiff_t floats = 0;
  for (const auto& row : rows) {
    const bool is_needed = needs_probabilities(row.sequence->method());
    const auto& place = out.emplace_back(RowProbabilities{floats, is_needed ? longest_lane(*row.sequence) + 1 : 0});
    floats += std::ptrdiff_t{places.all} * most_heads(hparams_).query * place.stride;
  }
  const auto bytes = as_size(floats) * sizeof(float);
  if (probabilities_.size() < bytes) {
    probabilities_ = Buffer();  // frees the old one before the new one is allocated
    probabilities_ = Buffer(account_, bytes + bytes / 2, "attention probabilities of a step");
  }
  return out;
}

namespace {

/// The longest lane that a method can keep of a text in a layer, merged entries included.
int longest_lane(const CacheOptions& options, const model::Hparams& hparams, int layer, int text) {
  const auto& spec = hparams.layer(layer);
  if (spec.window > 0) return std::min(text, spec.window);
  const auto& method = options.spec.method();
  if (!method.evicts()) return text;
  const auto kept = rows_kept(options, hparams, text);  // one head may hold the entries of all
  return static_cast<int>(std::min(kept, as_size(text)));
}

}  // namespace

std::size_t Stepper::bytes(const CacheOptions& options, const StepSize& size) const {
  std::size_t parts = 0;
  std::size_t probabilities = 0;
  for (int layer = 0; layer < hparams_.n_kv_layer; ++layer) {
    const auto shape = shape_of(hparams_, layer);
    const int lane = longest_lane(options, hparams_, layer, size.text);
    const auto* const rope = lane_shape(options, hparams_.layer(layer)).unrotates;
    const auto of_layer = attention_.bytes(shape, size.rows, {lane, size.more}, rope, size.text + size.more);
    const bool is_planned = attention_.on_device() != nullptr;  // layers have arrays at the same time
    parts = is_planned ? parts + of_layer : std::max(parts, of_layer);
    if (!needs_probabilities(method_of(options, hparams_.layer(layer)))) continue;
    const auto floats = as_size(most_places(hparams_, attention_).all) * as_size(most_heads(hparams_).query) *
                        as_size(lane + size.more + 1);
    probabilities = std::max(probabilities, (floats + floats / 2) * sizeof(float));
  }
  return parts + probabilities;
}

}  // namespace winnow::engine
