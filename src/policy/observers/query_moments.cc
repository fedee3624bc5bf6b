// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/query_moments.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "base/as_size.h"
#include "base/worker.h"
#include "cache/scratch.h"
#include "policy/observers/request.h"

namespace winnow::policy {

namespace {

/// Rows of a prompt, counted from its first one, that are added together, so that sums do not depend on chunks.
constexpr int kRowsTogether = 64;

class Moments : public ObserverOf<attention::QueryMoments> {
 public:
  using Wanted = int;  ///< the first token whose query counts

  Moments(int first, const ObservedLayer& layer)
      : heads_(layer.shape.query_heads),
        head_dim_(layer.shape.head_dim),
        moments_(heads_, head_dim_, layer.rope, layer.past + first) {}

  static ObserverBytes bytes(int /*first*/, const ObservedLayer& layer) {
    return {attention::QueryMoments::bytes(layer.shape.query_heads, layer.shape.head_dim), 0};
  }
  static std::string state_name(int first) { return fmt::format("query moments from {}", first); }
  static std::size_t state_bytes(int /*first*/, const ObservedLayer& layer, int /*rows*/) {
    return as_size(layer.shape.query_heads) * attention::QueryMoments::state_size(layer.shape.head_dim) *
           sizeof(double);
  }

  ObserverNeeds needs() const override { return {.queries = true}; }
  void take_state(int /*rows*/, std::span<const std::byte> state) override {
    const auto size = attention::QueryMoments::state_size(head_dim_);
    const std::span all(reinterpret_cast<const double*>(state.data()), as_size(heads_) * size);
    for (int head = 0; head < heads_; ++head) moments_.take_state(head, all.subspan(as_size(head) * size, size));
  }
  void keep_state(int rows, std::span<std::byte> state) override {
    kept_.emplace(rows, std::span(reinterpret_cast<double*>(state.data()), state.size() / sizeof(double)));
  }
  void see_rows(const LayerRows& rows, Worker worker) override {
    const auto width = as_size(heads_) * as_size(head_dim_);
    for (int row = rows.first, end = row; row < rows.first + rows.count; row = end) {
      end = std::min((row / kRowsTogether + 1) * kRowsTogether, rows.first + rows.count);
      moments_.add(rows.queries + as_size(row - rows.first) * width,
                   rows.scratch.positions().subspan(as_size(row), as_size(end - row)), worker);
      if (const auto kept = kept_.find(end); kept != kept_.end()) write_state(kept->second, worker);
    }
  }
  const attention::QueryMoments& result() const override { return moments_; }

 private:
  /// Each member of the team writes the heads to which it adds.
  void write_state(std::span<double> to, Worker worker) const {
    const auto size = attention::QueryMoments::state_size(head_dim_);
    for (int head = worker.index; head < heads_; head += worker.count)
      moments_.write_state(head, to.subspan(as_size(head) * size, size));
  }

  int heads_;
  int head_dim_;
  attention::QueryMoments moments_;
  std::map<int, std::span<double>> kept_;  ///< destinations of states, by rows
};

}  // namespace

ObserverPart<attention::QueryMoments> observe_moments(int first) {
  return {"query moments", fmt::format("mean and covariance of the queries from token {} on", first),
          [first](const Asking&) { return request<Moments, attention::QueryMoments>(first); }};
}

}  // namespace winnow::policy
