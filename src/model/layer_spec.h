// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "base/rope.h"

namespace winnow::model {

/// Factor of queries by position: 1 + slope ln(1 + floor(position / step)).
struct Temperature {
  float slope = 0;  ///< 0: the factor is always 1
  int step = 0;     ///< tokens

  float at(std::int32_t position) const {
    if (slope == 0) return 1;
    const int steps = position / step;
    return static_cast<float>(1 + slope * std::log(1.0 + steps));
  }
  bool operator==(const Temperature&) const = default;
};

/// Shapes of one layer. Layers of a network may differ in all of them.
struct LayerSpec {
  int n_head = 0;             ///< query heads; head h reads KV head h / group()
  int n_head_kv = 0;          ///< divides n_head
  int head_dim = 0;           ///< of queries, keys and values
  int n_ff = 0;               ///< width of the feed-forward block
  int n_expert = 0;           ///< 0: dense feed-forward
  int n_expert_used = 0;      ///< experts per row
  int n_ff_expert = 0;        ///< width of an expert
  int n_ff_shared = 0;        ///< width of the shared expert; 0: none
  float attention_scale = 0;  ///< factor of q·k
  float attention_cap = 0;    ///< soft cap of the scaled q·k; 0: none
  Temperature temperature;
  int window = 0;           ///< keys that a query sees, itself included; 0: all up to itself
  float rope_base = 10000;  ///< without scaling, pair i turns by rope_base^(-2i / rotated dimensions) per position
  Rope rope;                ///< with the scaling and factors of the file or the user; no frequencies: no rotation

  int group() const { return n_head / n_head_kv; }
  bool operator==(const LayerSpec&) const = default;
};

}  // namespace winnow::model
