// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "base/rope.h"

namespace winnow::model {

/// What queries are multiplied by at a position: 1 + slope ln(1 + position / step), in whole steps.
struct Temperature {
  float slope = 0;  ///< 0: 1 everywhere
  int step = 0;     ///< tokens

  float at(std::int32_t position) const {
    if (slope == 0) return 1;
    const int steps = position / step;
    return static_cast<float>(1 + slope * std::log(1.0 + steps));
  }
  bool operator==(const Temperature&) const = default;
};

/// The shapes of one layer. Layers of a network may differ in all of them.
struct LayerSpec {
  int n_head = 0;             ///< query heads; head h reads KV head h / group()
  int n_head_kv = 0;          ///< divides n_head
  int head_dim = 0;           ///< of queries, keys and values
  int n_ff = 0;               ///< width of the feed-forward part
  int n_expert = 0;           ///< experts that stand in its place; 0: none
  int n_expert_used = 0;      ///< of them by each row
  int n_ff_expert = 0;        ///< width of one
  int n_ff_shared = 0;        ///< of the expert that every row has besides; 0: there is none
  float attention_scale = 0;  ///< on q·k
  float attention_cap = 0;    ///< soft cap of what that gives; 0: there is none
  Temperature temperature;
  int window = 0;           ///< keys that a query sees, its own included; 0: all up to its own
  float rope_base = 10000;  ///< pair i turns by rope_base^(-2i / rotated dimensions) without scaling
  Rope rope;                ///< with the file's or the user's scaling and factors; no frequencies: nothing turns

  int group() const { return n_head / n_head_kv; }
  bool operator==(const LayerSpec&) const = default;
};

}  // namespace winnow::model
