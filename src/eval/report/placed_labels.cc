// SPDX-License-Identifier: Apache-2.0
#include "eval/report/placed_labels.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "eval/report/script.h"

namespace winnow::eval {

namespace {

const char* name_of(Offset::Align align) {
  return align == Offset::Align::left ? "left" : align == Offset::Align::center ? "center" : "right";
}

Box box_of(double x, double y, double width, double height, Offset::Align align) {
  const double left = align == Offset::Align::left ? x : align == Offset::Align::center ? x - width / 2 : x - width;
  return {left, y - height / 2, left + width, y + height / 2};
}

}  // namespace

double width_of(const std::string& text, double font) {
  constexpr double kLetter = 0.62;  // mean width of a letter in units of the font's size
  return kLetter * font * static_cast<double>(text.size());
}

void PlacedLabels::place(double x, double y, const std::string& text, const std::string& colour,
                         std::span<const Offset> offsets) {
  for (const auto& offset : offsets) {
    const double at_x = x + offset.dx;
    const double at_y = y + offset.dy;
    const Box box = box_of(at_x, at_y, width_of(text, font_), font_, offset.align);
    if (!box.is_within(picture_) ||
        std::any_of(taken_.begin(), taken_.end(), [&](const Box& other) { return box.overlaps(other); }))
      continue;
    taken_.push_back(box);
    script_ +=
        fmt::format("set label {} at screen {:.5f},{:.5f} {} font 'sans-serif,{}' textcolor rgb '{}'\n", plain(text),
                    at_x / picture_.right, 1 - at_y / picture_.bottom, name_of(offset.align), font_, colour);
    return;
  }
}

}  // namespace winnow::eval
