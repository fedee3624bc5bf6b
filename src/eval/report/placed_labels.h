// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

namespace winnow::eval {

/// A rectangle of a picture, in pixels from its left upper corner.
struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;

  bool overlaps(const Box& other) const {
    return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
  }
  bool is_within(const Box& other) const {
    return left >= other.left && right <= other.right && top >= other.top && bottom <= other.bottom;
  }
};

/// A place of a label relative to its point. dx and dy are in pixels, down and to the right.
struct Offset {
  enum class Align : unsigned char { left, center, right };
  Align align = Align::left;
  double dx = 0;
  double dy = 0;
};

/// Labels of points that overlap neither each other nor marks.
class PlacedLabels {
 public:
  /// `font`: size in pixels.
  PlacedLabels(Box picture, double font) : picture_(picture), font_(font) {}

  /// Keeps labels off a mark with this radius.
  void keep_free(double x, double y, double radius) {
    taken_.push_back({x - radius, y - radius, x + radius, y + radius});
  }
  /// Places a label at the first offset where there is room, or not at all.
  void place(double x, double y, const std::string& text, const std::string& colour, std::span<const Offset> offsets);
  /// Commands that draw the labels.
  const std::string& script() const { return script_; }

 private:
  Box picture_;
  double font_ = 0;
  std::vector<Box> taken_;
  std::string script_;
};

/// Width of a text in pixels, roughly.
double width_of(const std::string& text, double font);

}  // namespace winnow::eval
