// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needles/place.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::eval::needles {

namespace {

/// Words [begin, end) of a haystack, and the word before which each sentence stands.
struct Layout {
  std::size_t begin;
  std::size_t end;
  std::vector<std::size_t> places;
};

void append(std::string& to, const std::string& more) { to += (to.empty() ? "" : " ") + more; }

std::string text_of(const Haystack& haystack, const Layout& layout, const std::vector<std::string>& sentences) {
  std::string out;
  for (std::size_t at = layout.begin; at <= layout.end; ++at) {
    for (std::size_t i = 0; i < sentences.size(); ++i) {
      if (std::min(layout.places[i], layout.end) == at) append(out, sentences[i]);
    }
    if (at < layout.end) append(out, haystack.word(at));
  }
  return out;
}

/// The beginning of the next sentence after this depth, or the end.
std::size_t place_at(const Haystack& haystack, std::size_t begin, std::size_t end, int depth) {
  const auto at = begin + (end - begin) * as_size(depth) / 100;
  return at == begin ? at : std::min(end, haystack.sentence_from(at));
}

/// The greatest number in [0, most] that fits, by bisection. REQUIRES: 0 fits.
std::size_t most_that_fits(std::size_t most, const std::function<bool(std::size_t)>& fits) {
  std::size_t low = 0;
  std::size_t high = most + 1;
  while (high - low > 1) {
    const std::size_t middle = low + (high - low) / 2;
    (fits(middle) ? low : high) = middle;
  }
  return low;
}

class Hiding {
 public:
  Hiding(const Model& model, const Haystack& haystack, const Hidden& hidden, const Wanted& wanted)
      : model_(model),
        haystack_(haystack),
        hidden_(hidden),
        wanted_(wanted),
        room_(wanted.borders ? words_before(wanted.borders->tokens) : 0) {}

  PromptText all(std::size_t begin) {
    if (const int least = tokens(laid_out(begin, 0)); least > wanted_.length)
      throw InputError(
          fmt::format("the shortest prompt has {} tokens, more than --length allows ({})", least, wanted_.length));
    const auto words = most_that_fits(as_size(wanted_.length), [&](std::size_t n) { return fits(laid_out(begin, n)); });
    Layout layout = laid_out(begin, words);
    if (wanted_.borders) {
      move_to(*wanted_.borders, layout);
      const auto more = most_that_fits(room_, [&](std::size_t n) {
        return fits({layout.begin, layout.end + n, layout.places});
      });
      layout.end += more;
    }
    return prompt(layout);
  }

 private:
  /// The layout of `words` words from `begin` on, after the words that move_to() may remove.
  Layout laid_out(std::size_t begin, std::size_t words) const {
    Layout out{begin - room_, begin + words, {}};
    for (const int depth : wanted_.depths) out.places.push_back(place_at(haystack_, begin, out.end, depth));
    return out;
  }

  PromptText prompt(const Layout& layout) const {
    PromptText out;
    out.text = text_of(haystack_, layout, hidden_.sentences);
    const bool is_raw = wanted_.format == PromptFormat::raw;
    out.question = is_raw ? fmt::format("\n\n{} {}", hidden_.question, hidden_.begun) : hidden_.question;
    out.format = wanted_.format;
    return out;
  }

  int tokens(const Layout& layout) const {
    const Prompt all = model_.tokenize(prompt(layout));
    const auto begun = wanted_.format == PromptFormat::raw ? 0 : model_.vocab().tokenize(hidden_.begun).size();
    return static_cast<int>(all.text.size() + all.question.size() + begun);
  }

  bool fits(const Layout& layout) const { return tokens(layout) <= wanted_.length; }

  /// Removes words from the beginning until the first answer is at its place, or as near to it as possible.
  void move_to(const Borders& borders, Layout& layout) const {
    constexpr double kNearEnough = 0.5;
    const double aim = borders.place == Borders::Place::at ? 0 : borders.tokens / 2.0;
    std::size_t best = 0;
    double nearest = borders.tokens;
    for (std::size_t less = 0; less <= room_ && nearest > kNearEnough; ++less) {
      const auto moved = prompt({layout.begin + less, layout.end, layout.places});
      const auto range = tokens_with(model_, moved, hidden_.answers.front());
      const double away = std::abs(to_border(range, borders.tokens) - aim);
      if (away < nearest) nearest = away, best = less;
    }
    layout.begin += best;
  }

  const Model& model_;
  const Haystack& haystack_;
  const Hidden& hidden_;
  const Wanted& wanted_;
  std::size_t room_;  ///< words before the sentences, of which move_to() removes some
};

}  // namespace

Haystack::Haystack(const std::string& text) {
  std::istringstream stream(text);
  for (std::string word; stream >> word;) words_.push_back(word);
  if (words_.empty()) throw InputError("the texts in which answers are hidden have no words");
}

std::size_t Haystack::sentence_from(std::size_t at) const {
  const auto ends = [&](std::size_t i) {
    return std::string_view(".?!").find(word(i).back()) != std::string_view::npos;
  };
  const auto limit = at + words_.size();
  while (at < limit && !ends(at - 1)) ++at;
  return at;
}

PromptText hide(const Model& model, const Haystack& haystack, std::size_t begin, const Hidden& hidden,
                const Wanted& wanted) {
  return Hiding(model, haystack, hidden, wanted).all(begin);
}

TokenRange tokens_with(const Model& model, const PromptText& prompt, const std::string& part) {
  const auto tokens_until = [&](std::size_t end) {
    auto beginning = prompt;
    beginning.text.resize(end);
    beginning.question.clear();
    return static_cast<int>(model.tokenize(beginning).text.size());
  };
  const auto at = prompt.text.find(part);
  const std::size_t space = at > 0 && prompt.text[at - 1] == ' ' ? 1 : 0;
  return {tokens_until(at - space), tokens_until(at + part.size())};
}

double to_border(const TokenRange& range, int every) {
  const double middle = (range.begin + range.end) / 2.0;
  return std::abs(middle - every * std::round(middle / every));
}

}  // namespace winnow::eval::needles
