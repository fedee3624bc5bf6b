// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include "cache/element.h"
#include "cache/scratch.h"
#include "policy/rows.h"
#include "winnow/policy/method.h"

namespace winnow::policy {

namespace {

void decode(const cache::Rows& rows, int row, std::span<float> out) {
  cache::decode_row(rows.type, rows.row(row), out);
}

std::vector<double> norms(const cache::LayerScratch& scratch, const cache::RowProducts& of_rows) {
  auto out = scratch.products(of_rows);
  for (double& x : out) x = std::sqrt(x);
  return out;
}

}  // namespace

int LayerView::tokens() const { return scratch.size(); }
void LayerView::key(int kv_head, int token, std::span<float> out) const { decode(scratch.keys(kv_head), token, out); }
void LayerView::value(int kv_head, int token, std::span<float> out) const {
  decode(scratch.values(kv_head), token, out);
}

std::vector<double> LayerView::key_norms(int kv_head) const {
  if (uneven_magnitude(rope, shape.head_dim) == 1) return norms(scratch, {cache::RowProducts::Of::keys, kv_head});
  std::vector<double> out;
  for_each_key(*this, kv_head, [&](int, std::span<const float> key) { out.push_back(norm(key)); });
  return out;
}

std::vector<double> LayerView::value_norms(int kv_head) const {
  return norms(scratch, {cache::RowProducts::Of::values, kv_head});
}

}  // namespace winnow::policy
