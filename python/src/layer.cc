// SPDX-License-Identifier: Apache-2.0
#include "layer.h"

#include "bind.h"
#include "winnow/error.h"

namespace winnow::python {

namespace {

using Row = void (policy::LayerView::*)(int, int, std::span<float>) const;

Cube all_rows(const policy::LayerView& view, Row row) {
  const auto heads = static_cast<std::size_t>(view.shape.kv_heads);
  const auto tokens = static_cast<std::size_t>(view.tokens());
  const auto dim = static_cast<std::size_t>(view.shape.head_dim);
  std::vector<float> out(heads * tokens * dim);
  auto* to = out.data();
  for (int head = 0; head < view.shape.kv_heads; ++head) {
    for (int token = 0; token < view.tokens(); ++token, to += dim) (view.*row)(head, token, {to, dim});
  }
  return array_of<Cube>(std::move(out), {heads, tokens, dim});
}

}  // namespace

const policy::LayerView& Layer::view() const {
  if (view_ == nullptr) throw UsageError("the layer is gone: its score() has returned");
  return *view_;
}

Cube Layer::keys() const { return all_rows(view(), &policy::LayerView::key); }

Cube Layer::values() const { return all_rows(view(), &policy::LayerView::value); }

Rows Layer::attention() const {
  if (!attention_)
    throw UsageError("the method observes no attention: give its class `observe`, a number of last queries or 'all'");
  const auto& observed = view()[*attention_];
  std::vector<float> out;
  for (int head = 0; head < observed.query_heads(); ++head) {
    const auto row = observed.head(head);
    out.insert(out.end(), row.begin(), row.end());
  }
  return array_of<Rows>(std::move(out),
                        {static_cast<std::size_t>(observed.query_heads()), static_cast<std::size_t>(observed.size())});
}

}  // namespace winnow::python
