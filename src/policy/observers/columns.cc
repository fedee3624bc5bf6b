// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/columns.h"

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <span>
#include <string>
#include <utility>

#include "base/as_size.h"
#include "policy/observers/request.h"
#include "winnow/policy/score.h"

namespace winnow::policy {

namespace {

using attention::QueryRowSet;
using attention::Reduction;

class Columns : public ObserverOf<attention::ColumnStatistics> {
 public:
  using Wanted = attention::ColumnRequest;

  Columns(const Wanted& wanted, const ObservedLayer& layer)
      : statistics_(wanted, layer.shape.query_heads, layer.prompt.tokens) {}

  static ObserverBytes bytes(const Wanted& /*wanted*/, const ObservedLayer& layer) {
    return {as_size(layer.shape.query_heads) * as_size(layer.prompt.tokens) * sizeof(float), 0};
  }
  static std::vector<attention::ColumnRequest> columns(const Wanted& wanted) { return {wanted}; }

  static int first_row(const Wanted& wanted, const LayerPrompt& prompt) { return wanted.rows.first(prompt.tokens); }

  /// Rows that are counted from the end have another meaning in a longer prompt.
  static std::string state_name(const Wanted& wanted) {
    const bool all = wanted.rows.kind == QueryRowSet::Kind::all;
    if (!all && wanted.rows.kind != QueryRowSet::Kind::band) return {};
    return fmt::format("attention {} {} {}", all ? "all" : fmt::format("band {}", wanted.rows.count),
                       wanted.reduction == Reduction::sum ? "sum" : "max",
                       wanted.scale == attention::RowScale::one ? "one" : "inverse-input");
  }
  static std::size_t state_bytes(const Wanted& /*wanted*/, const ObservedLayer& layer, int rows) {
    return as_size(layer.shape.query_heads) * as_size(rows) * sizeof(float);
  }
  void take_state(int rows, std::span<const std::byte> state) override {
    statistics_.take_state(rows, reinterpret_cast<const float*>(state.data()));
  }
  void keep_state(int rows, std::span<std::byte> state) override {
    statistics_.keep_state(rows, reinterpret_cast<float*>(state.data()));
  }

  std::vector<attention::ColumnStatistics*> columns() override { return {&statistics_}; }
  const attention::ColumnStatistics& result() const override { return statistics_; }

 private:
  attention::ColumnStatistics statistics_;
};

}  // namespace

ObserverPart<attention::ColumnStatistics> observe_columns(
    std::string text, std::function<attention::ColumnRequest(const LayerPrompt&, int budget)> which) {
  return {"observe", std::move(text), [which = std::move(which)](const Asking& asking) {
            return request<Columns, attention::ColumnStatistics>(which(asking.prompt, asking.budget));
          }};
}

ObserverPart<attention::ColumnStatistics> observe_last(int count) {
  return observe_columns(count == 1 ? "attention of the last query"
                                    : "sum of the attention of the last " + std::to_string(count) + " queries",
                         [count](const LayerPrompt&, int) {
                           return attention::ColumnRequest{{QueryRowSet::Kind::last, count, {}}, Reduction::sum};
                         });
}

ObserverPart<attention::ColumnStatistics> observe_all() {
  return observe_columns("sum of the attention of all queries", [](const LayerPrompt&, int) {
    return attention::ColumnRequest{{QueryRowSet::Kind::all, 0, {}}, Reduction::sum};
  });
}

}  // namespace winnow::policy
