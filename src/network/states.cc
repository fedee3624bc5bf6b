// SPDX-License-Identifier: Apache-2.0
#include "network/states.h"

#include <cstring>

#include "base/as_size.h"

namespace winnow::network {

std::size_t States::bytes(const model::Hparams& hparams, std::size_t rows) {
  return rows * as_size(hparams.n_embd) * sizeof(float);
}

States::States(MemoryAccount& account, const model::Hparams& hparams, int rows, const char* purpose)
    : memory_(account, bytes(hparams, as_size(rows)), purpose), width_(hparams.n_embd), rows_(rows) {}

float* States::row(int i) { return memory_.as<float>().data() + static_cast<std::ptrdiff_t>(i) * width_; }
const float* States::row(int i) const { return memory_.as<float>().data() + static_cast<std::ptrdiff_t>(i) * width_; }

void States::copy(int to, const States& of, int from) {
  if (&of != this || to != from) std::memcpy(row(to), of.row(from), as_size(width_) * sizeof(float));
}

}  // namespace winnow::network
