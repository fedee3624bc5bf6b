#include "attention/cpu/turn.h"

namespace winnow::attention::cpu {

Buffer TurnTable::multiples(std::int32_t step, std::int32_t count) const {
  const auto row = static_cast<std::size_t>(2 * pairs());
  Buffer out(*account_, static_cast<std::size_t>(count) * row * sizeof(float), "the table of rotations");
  float* to = out.as<float>().data();
  for (std::int32_t i = 0; i < count; ++i, to += row) rope_->angles(static_cast<std::int64_t>(i) * step, to);
  return out;
}

void TurnTable::reserve(std::int32_t end) {
  if (end <= end_) return;
  if (fine_.empty()) fine_ = multiples(1, kFine);
  const std::int32_t rows = end / kFine + end / (2 * kFine) + 1;
  coarse_ = multiples(kFine, rows);
  end_ = rows * kFine;
}

}  // namespace winnow::attention::cpu
