// SPDX-License-Identifier: Apache-2.0
#include "policy/spans.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/as_size.h"

namespace winnow::policy {

namespace {

/// The text of the evictable entries [begin, end).
class Text {
 public:
  Text(std::span<const TokenClass> classes, const SpanShape& shape, int begin, int end)
      : classes_(classes), shape_(shape), begin_(begin), end_(end) {}

  /// Worth of each entry, [n], from scores of at least 0. Entries with minus infinity get nothing.
  std::vector<double> spread(std::span<const double> scores) const {
    std::vector<double> out = handed_on(scores);
    std::vector<double> back = out;
    for (int j = begin_ + 1; j < end_; ++j) {
      if (gets_from(j, j - 1, scores)) out[as_size(j)] = std::max(out[as_size(j)], shape_.after * out[as_size(j - 1)]);
    }
    for (int j = end_ - 2; j >= begin_; --j) {
      if (gets_from(j, j + 1, scores))
        back[as_size(j)] = std::max(back[as_size(j)], shape_.before * back[as_size(j + 1)]);
    }
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = std::max({scores[j], out[j], back[j]});
    return out;
  }

  /// The words, from the last to the first.
  std::vector<Piece> words(std::span<const double> worth) const {
    std::vector<Piece> out;
    for (int end = end_; end > begin_;) {
      int first = end - 1;
      while (first > begin_ && is_in_word(first)) --first;
      Piece& word = out.emplace_back(Piece{worth[as_size(first)], {}});
      for (int j = first; j < end; ++j) {
        word.score = std::max(word.score, worth[as_size(j)]);
        word.entries.push_back(j);
      }
      end = first;
    }
    return out;
  }

 private:
  /// Scores that spread, before the factors for distance. The power makes weak entries spread less than their share.
  std::vector<double> handed_on(std::span<const double> scores) const {
    std::vector<double> out(scores.begin(), scores.end());
    for (double& x : out) {
      if (x > 0 && x < 1) x = std::pow(x, shape_.power);
    }
    return out;
  }
  bool gets_from(int entry, int neighbour, std::span<const double> scores) const {
    return std::isfinite(scores[as_size(entry)]) && std::isfinite(scores[as_size(neighbour)]) &&
           !stops_before(std::max(entry, neighbour));
  }
  const TokenClass& of(int entry) const { return classes_[as_size(entry)]; }
  /// True if an entry continues the word of the entry before.
  bool is_in_word(int entry) const { return of(entry).begins_in_word && of(entry - 1).ends_in_word; }
  /// True if a line or sentence begins at an entry. A mark within a word, as in 3.14, ends nothing.
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
};

/// The lowest finite score of [begin, end), or 0 if there is none.
double least_of(std::span<const double> scores, int begin, int end) {
  double out = std::numeric_limits<double>::infinity();
  for (int j = begin; j < end; ++j) {
    if (std::isfinite(scores[as_size(j)])) out = std::min(out, scores[as_size(j)]);
  }
  return std::isfinite(out) ? out : 0;
}

std::vector<Piece> spans(const LayerView& view, std::span<const double> scores, const AlwaysKept& always_kept,
                         const SpanShape& shape) {
  const int begin = always_kept.sinks;
  const int end = static_cast<int>(scores.size()) - always_kept.recent;
  const Text text(view.classes, shape, begin, end);
  const double least = least_of(scores, begin, end);
  std::vector<double> above(scores.begin(), scores.end());
  for (double& x : above) x -= least;
  auto out = text.words(text.spread(above));
  for (Piece& word : out) word.score += least;  // scores of different heads are compared
  std::stable_sort(out.begin(), out.end(), [](const Piece& a, const Piece& b) { return a.score > b.score; });
  return out;
}

}  // namespace

DividePart spans_of(const SpanShape& shape) {
  const std::string what = shape.power == 1 ? "scores" : fmt::format("scores to the power of {}", shape.power);
  return {fmt::format("words, by {} of which each entry passes {} on to the one before and {} to the one after", what,
                      shape.before, shape.after),
          [shape](const LayerView& view, std::span<const double> scores, const AlwaysKept& always_kept) {
            return spans(view, scores, always_kept, shape);
          }};
}

}  // namespace winnow::policy
