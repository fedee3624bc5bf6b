// SPDX-License-Identifier: Apache-2.0
#include "engine/decode.h"

#include <algorithm>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

int longest_lane(const Sequence& sequence) {
  int most = 0;
  for (int layer = 0; layer < sequence.layers(); ++layer) {
    if (sequence.counts(layer)) most = std::max(most, sequence.layer(layer).longest_lane());
  }
  return most;
}

}  // namespace

void Stepper::run(std::span<const StepRow> rows, std::span<float> logits) {
  std::vector<Token> tokens;
  std::vector<std::int32_t> positions;
  for (const auto& row : rows) {
    tokens.push_back(row.token);
    positions.push_back(row.position);
  }
  for (int row = 0; row < static_cast<int>(rows.size()); row = end_of_sequence(rows, row)) {
    rows[row].sequence->reserve(end_of_sequence(rows, row) - row);
    rows[row].sequence->attended = 0;
  }
  const auto watched = place_probabilities(rows);
  LaneAttention attention(attention_, hparams_, rows, watched, probabilities_.as<float>().data(), calibration_);
  const bool one = end_of_sequence(rows, 0) == static_cast<int>(rows.size());
  executor_.step(one ? network::Rows::of_one_sequence : network::Rows::of_several, tokens, positions, attention,
                 logits);
  attention.rethrow();
  for (const auto& row : rows) {
    row.sequence->seen = row.position + 1;
    row.sequence->tokens.push_back(row.token);
  }
  for (int row = 0; row < static_cast<int>(rows.size()); row = end_of_sequence(rows, row))
    rows[row].sequence->end_step();
}

std::vector<Watched> Stepper::place_probabilities(std::span<const StepRow> rows) {
  std::vector<Watched> out;
  std::ptrdiff_t floats = 0;
  for (const auto& row : rows) {
    const auto& method = row.sequence->method();
    const bool watches = method.decoding.step && method.decoding.step_sees_attention;
    const auto& place = out.emplace_back(Watched{floats, watches ? longest_lane(*row.sequence) + 1 : 0});
    floats += std::ptrdiff_t{places_of_probabilities(hparams_)} * most_heads(hparams_).query * place.stride;
  }
  const auto bytes = as_size(floats) * sizeof(float);
  if (probabilities_.size() < bytes)
    probabilities_ = Buffer(account_, bytes + bytes / 2, "attention probabilities of a step");
  return out;
}

}  // namespace winnow::engine
