// SPDX-License-Identifier: Apache-2.0
#include "engine/output_lengths.h"

#include "base/as_size.h"
#include "cache/element.h"

namespace winnow::engine {

namespace {

/// All heads of a part, which lie one after the other.
std::span<float> all_of(policy::Scores& part) {
  return {part.head(0).data(), as_size(part.heads()) * as_size(part.size())};
}

}  // namespace

bool wants_output_lengths(const policy::Method& method, const policy::Terms& terms) {
  return method.selection.output_lengths && method.evicts() && terms.prompt.tokens > terms.budget;
}

policy::OutputLengths output_lengths(network::Executor& executor, const model::Hparams& hparams, int layer,
                                     const cache::LayerScratch& scratch) {
  const int heads = hparams.layer(layer).n_head;
  const auto dim = as_size(scratch.head_dim());
  policy::OutputLengths out{{heads, scratch.size()}, {heads, scratch.size()}};
  const auto values = [&](int head, int first, int count, float* to) {
    const auto rows = scratch.values(head);
    for (int i = 0; i < count; ++i)
      cache::decode_row(rows.type, rows.row(first + i),
                        {to + static_cast<std::ptrdiff_t>(i) * scratch.head_dim(), dim});
  };
  executor.output_lengths(layer, scratch.size(), values, {all_of(out.absolute), all_of(out.euclidean)});
  return out;
}

std::size_t output_lengths_bytes(const model::Hparams& hparams, const model::LayerSpec& layer, int tokens) {
  return network::Executor::output_lengths_bytes(hparams) + 2 * as_size(layer.n_head) * as_size(tokens) * sizeof(float);
}

}  // namespace winnow::engine
