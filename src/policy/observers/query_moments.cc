// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/query_moments.h"

#include <spdlog/fmt/fmt.h>

#include "base/as_size.h"
#include "cache/scratch.h"
#include "policy/observers/request.h"

namespace winnow::policy {

namespace {

class Moments : public ObserverOf<attention::QueryMoments> {
 public:
  using Wanted = int;  ///< the first token whose query counts

  Moments(int first, const ObservedLayer& layer)
      : moments_(layer.shape.query_heads, layer.shape.head_dim, layer.rope, layer.past + first) {}

  static ObserverBytes bytes(int /*first*/, const ObservedLayer& layer) {
    return {attention::QueryMoments::bytes(layer.shape.query_heads, layer.shape.head_dim), 0};
  }

  ObserverNeeds needs() const override { return {.queries = true}; }
  void see_rows(const LayerRows& rows, Worker worker) override {
    moments_.add(rows.queries, rows.scratch.positions().subspan(as_size(rows.first), as_size(rows.count)), worker);
  }
  const attention::QueryMoments& result() const override { return moments_; }

 private:
  attention::QueryMoments moments_;
};

}  // namespace

ObserverPart<attention::QueryMoments> observe_moments(int first) {
  return {"query moments", fmt::format("mean and covariance of the queries from token {} on", first),
          [first](const Asking&) { return request<Moments, attention::QueryMoments>(first); }};
}

}  // namespace winnow::policy
