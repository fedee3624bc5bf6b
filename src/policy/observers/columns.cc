// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/columns.h"

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
