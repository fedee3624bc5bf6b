// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "base/cpu.h"

namespace winnow {

/// Preserves the calling thread's AMX tile configuration around code that changes it: ggml configures a thread's tiles
/// once, and would hit an illegal instruction if they had been released.
class TileState {
 public:
  TileState() {
#ifdef __x86_64__
    if (has_amx_bf16()) asm volatile("sttilecfg %0" : "=m"(config_)::"memory");
#endif
  }
  ~TileState() {
#ifdef __x86_64__
    if (has_amx_bf16()) asm volatile("ldtilecfg %0" ::"m"(config_) : "memory");
#endif
  }
  TileState(const TileState&) = delete;
  TileState& operator=(const TileState&) = delete;

 private:
  struct alignas(64) Config {
    std::uint8_t bytes[64];
  };
  Config config_ = {};
};

}  // namespace winnow
