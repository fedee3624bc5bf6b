// SPDX-License-Identifier: Apache-2.0
#include "policy/spans.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "policy/pieces.h"

namespace winnow::policy {

namespace {

/// The text of the evictable entries [begin, end), with what is in spans already.
class Text {
 public:
  Text(std::span<const TokenClass> classes, const SpanShape& shape, int begin, int end)
      : classes_(classes), shape_(shape), begin_(begin), end_(end), taken_(classes.size()) {}

  bool is_taken(std::int32_t entry) const { return taken_[as_size(entry)]; }

  /// The entries of the span around one, which are then taken.
  std::vector<std::int32_t> take_span(std::int32_t best) {
    int first = best;
    while (first > std::max(begin_, best - shape_.before) && !stops_before(first)) --first;
    while (first > begin_ && is_in_word(first)) --first;
    int end = best + 1;
    while (end < std::min(end_, best + 1 + shape_.after) && !stops_before(end)) ++end;
    while (end < end_ && is_in_word(end)) ++end;
    std::vector<std::int32_t> out;
    for (int j = first; j < end; ++j) {
      if (!taken_[as_size(j)]) out.push_back(j);
      taken_[as_size(j)] = true;
    }
    return out;
  }

 private:
  const TokenClass& of(int entry) const { return classes_[as_size(entry)]; }
  /// Whether an entry goes on with the word of the one before it.
  bool is_in_word(int entry) const { return of(entry).begins_in_word && of(entry - 1).ends_in_word; }
  /// Whether a line or a sentence begins with an entry. A mark that a word follows at once, as in 3.14, ends nothing.
  bool stops_before(int entry) const {
    if (shape_.stop == SpanShape::Stop::none) return false;
    const TokenClass& last = of(entry - 1);
    const bool is_sentence = shape_.stop == SpanShape::Stop::sentence;
    return last.ends_line || (is_sentence && last.ends_sentence && !of(entry).begins_in_word);
  }

  std::span<const TokenClass> classes_;
  const SpanShape& shape_;
  int begin_;
  int end_;
  std::vector<bool> taken_;
};

/// Indices [begin, end), from the best to the worst; of equals the later first.
std::vector<std::int32_t> ranked(std::span<const double> scores, int begin, int end) {
  std::vector<std::int32_t> out(as_size(std::max(0, end - begin)));
  std::iota(out.rbegin(), out.rend(), begin);
  std::stable_sort(out.begin(), out.end(),
                   [&](std::int32_t a, std::int32_t b) { return scores[as_size(a)] > scores[as_size(b)]; });
  return out;
}

std::vector<Piece> spans(const LayerView& view, std::span<const double> scores, const AlwaysKept& always_kept,
                         const SpanShape& shape) {
  const int begin = always_kept.sinks;
  const int end = static_cast<int>(scores.size()) - always_kept.recent;
  Text text(view.classes, shape, begin, end);
  std::vector<Piece> out;
  for (const auto best : ranked(scores, begin, end)) {
    if (text.is_taken(best)) continue;
    auto& span = out.emplace_back(Piece{scores[as_size(best)], text.take_span(best)});
    order_from(best, span.entries);
  }
  return out;
}

}  // namespace

DividePart spans_of(const SpanShape& shape) {
  return {fmt::format("spans of text of up to {} entries before and {} after the best one", shape.before, shape.after),
          [shape](const LayerView& view, std::span<const double> scores, const AlwaysKept& always_kept) {
            return spans(view, scores, always_kept, shape);
          }};
}

}  // namespace winnow::policy
