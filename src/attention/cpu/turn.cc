#include "attention/cpu/turn.h"

#include <cstring>
#include <utility>

namespace winnow::attention::cpu {

void TurnTable::reserve(std::int32_t end) {
  if (end <= end_) return;
  const std::int32_t room = end + end / 2;
  const auto row = static_cast<std::size_t>(2 * pairs());
  Buffer grown(*account_, static_cast<std::size_t>(room) * row * sizeof(float), "the table of rotations");
  if (!values_.empty()) std::memcpy(grown.data(), values_.data(), values_.size());
  float* to = grown.as<float>().data() + static_cast<std::size_t>(end_) * row;
  for (std::int32_t position = end_; position < room; ++position, to += row) {
    rope_->angles(position, to);
  }
  values_ = std::move(grown);
  end_ = room;
}

}  // namespace winnow::attention::cpu
