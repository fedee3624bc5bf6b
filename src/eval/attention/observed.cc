// SPDX-License-Identifier: Apache-2.0
#include "eval/attention/observed.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>

#include "base/check_memory.h"
#include "engine/layer_record.h"
#include "engine/layers.h"
#include "engine/prompt_reading.h"
#include "engine/session_impl.h"
#include "policy/rows.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

/// Calls back for each layer without a window.
class Showing : public engine::LayerRecord {
 public:
  Showing(Session::Impl& session, int tokens, const std::function<void(const LayerAttention&)>& show)
      : LayerRecord(session.hparams, session.account, tokens), hparams_(session.hparams), show_(show) {}

  void end_layer(const policy::EndedLayer& layer) override {
    if (hparams_.layer(layer.number).window > 0) return;
    show_({engine::view_of(hparams_, layer.number, layer.scratch), queries(), log_sums(), &sums(), &diagonal()});
  }

 private:
  const model::Hparams& hparams_;
  const std::function<void(const LayerAttention&)>& show_;
};

void check_layers(const model::Hparams& hparams) {
  if (hparams.n_global == 0)
    throw InputError("all layers of the model have sliding windows: attention tasks need a layer without one");
  if (const int readers = hparams.n_layer - hparams.n_kv_layer; readers > 0)
    throw InputError(
        fmt::format("attention tasks need a model whose layers all have keys of their own, but {} of the {} layers "
                    "read those of other layers",
                    readers, hparams.n_layer));
}

}  // namespace

std::span<const float> LayerAttention::query(int token, int query_head) const {
  const auto dim = as_size(view.shape.head_dim);
  return queries.subspan((as_size(token) * as_size(view.shape.query_heads) + as_size(query_head)) * dim, dim);
}

void observe(Session& session, std::span<const Token> tokens, const std::function<void(const LayerAttention&)>& show) {
  auto& impl = engine::parts_of(session);
  check_layers(impl.hparams);
  impl.check(tokens);
  const int count = static_cast<int>(tokens.size());
  const CacheOptions full;
  engine::ReadingPlan plan(impl, count, full);
  check_memory(plan.bytes().all() + engine::LayerRecord::bytes(impl.hparams, count),
               fmt::format("observing the attention of {} tokens", count));
  const CountingScope counting(impl.account);
  Showing showing(impl, count, show);
  engine::PromptReading(impl, std::move(plan), {.text = tokens, .observer = &showing}).run();
}

std::vector<float> decoded(const cache::Rows& rows) {
  std::vector<float> out;
  policy::for_each_row(rows, [&](int, std::span<const float> row) { out.insert(out.end(), row.begin(), row.end()); });
  return out;
}

HeadAttention::HeadAttention(const LayerAttention& layer, int kv_head)
    : layer_(layer),
      dim_(as_size(layer.view.shape.head_dim)),
      keys_(decoded(layer.view.scratch.keys(kv_head)), layer.view.shape.head_dim),
      values_(decoded(layer.view.scratch.values(kv_head))) {}

std::vector<double> HeadAttention::row(int query_head, int token, double gain) const {
  std::vector<float> products(as_size(keys_.stride()));
  keys_.multiply(layer_.query(token, query_head), products);
  const auto& shape = layer_.view.shape;
  std::vector<double> out;
  double most = -std::numeric_limits<double>::infinity();
  for (int j = 0; j <= token; ++j) out.push_back(gain * static_cast<double>(shape.logit(products[j])));
  for (const double logit : out) most = std::max(most, logit);
  for (const float sink : shape.sink_of(query_head)) most = std::max(most, gain * static_cast<double>(sink));
  double sum = 0;
  for (const float sink : shape.sink_of(query_head)) sum += std::exp(gain * static_cast<double>(sink) - most);
  for (double& x : out) {
    x = std::exp(x - most);
    sum += x;
  }
  for (double& x : out) x /= sum;
  return out;
}

double mean(std::span<const double> numbers) {
  const auto count = static_cast<double>(std::max<std::size_t>(1, numbers.size()));
  return std::accumulate(numbers.begin(), numbers.end(), 0.0) / count;
}

std::vector<double> brief(std::span<const double> numbers) {
  std::vector<double> out;
  for (const double x : numbers) out.push_back(std::strtod(fmt::format("{:.5g}", x).c_str(), nullptr));
  return out;
}

}  // namespace winnow::eval
