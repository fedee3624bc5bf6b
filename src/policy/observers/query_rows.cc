// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/query_rows.h"

#include <utility>

#include "base/as_size.h"
#include "base/worker.h"
#include "policy/observers/request.h"

namespace winnow::policy {

namespace {

class Rows : public ObserverOf<attention::QueryRows> {
 public:
  using Wanted = attention::QueryRowSet;

  Rows(const Wanted& wanted, const ObservedLayer& layer)
      : rows_(wanted, layer.prompt.tokens, layer.shape.query_heads, layer.shape.head_dim),
        width_(static_cast<std::ptrdiff_t>(layer.shape.query_heads) * layer.shape.head_dim) {}

  static ObserverBytes bytes(const Wanted& wanted, const ObservedLayer& layer) {
    return {attention::QueryRows::bytes(wanted, layer.prompt.tokens, layer.shape.query_heads, layer.shape.head_dim,
                                        layer.readers),
            0};
  }

  static int first_row(const Wanted& wanted, const LayerPrompt& prompt) { return wanted.first(prompt.tokens); }

  ObserverNeeds needs() const override { return {.queries = true}; }
  void begin_layer(const ObservedLayer& /*layer*/) override { rows_.begin_layer(); }
  void see_rows(const LayerRows& rows, Worker worker) override {
    for (int i = worker.index; i < rows.count; i += worker.count)
      rows_.store(rows.first + i, rows.queries + i * width_, rows.outputs + i * width_);
  }
  const attention::QueryRows& result() const override { return rows_; }

 private:
  attention::QueryRows rows_;
  std::ptrdiff_t width_;
};

}  // namespace

ObserverPart<attention::QueryRows> observe_rows(std::string text,
                                                std::function<attention::QueryRowSet(const LayerPrompt&)> which) {
  return {kQueryRows, std::move(text), [which = std::move(which)](const Asking& asking) {
            const attention::QueryRowSet none{attention::QueryRowSet::Kind::listed, 0, {}};
            return request<Rows, attention::QueryRows>(asking.past > 0 ? none : which(asking.prompt));
          }};
}

}  // namespace winnow::policy
