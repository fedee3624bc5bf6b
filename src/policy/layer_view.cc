// SPDX-License-Identifier: Apache-2.0
#include "cache/element.h"
#include "cache/scratch.h"
#include "winnow/policy/method.h"

namespace winnow::policy {

namespace {

void decode(const cache::Rows& rows, int row, std::span<float> out) {
  cache::decode_row(rows.type, rows.row(row), out);
}

}  // namespace

int LayerView::tokens() const { return scratch.size(); }
void LayerView::key(int kv_head, int token, std::span<float> out) const { decode(scratch.keys(kv_head), token, out); }
void LayerView::value(int kv_head, int token, std::span<float> out) const {
  decode(scratch.values(kv_head), token, out);
}

}  // namespace winnow::policy
