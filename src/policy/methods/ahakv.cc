// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "policy/methods/presets.h"
#include "policy/observers/columns.h"
#include "policy/rows.h"
#include "policy/step.h"
#include "winnow/policy/score.h"

namespace winnow::policy::methods {

namespace {

/// Factor of the logits q·k / sqrt(d).
enum class Gain : std::uint8_t {
  none,
  floor,      ///< equation 12 for logits that already include 1 / sqrt(d); at least 1
  paper,      ///< equation 12 as it stands: 0 for at most B keys
  algorithm,  ///< algorithm 1: equation 12 with its own 1 / sqrt(d)
};

/// Equation 12: the factor with which the softmax over n keys has an entropy of ln B. A factor below 1 flattens it.
double step_gain(Gain gain, int n, int budget, int head_dim) {
  const double squared = std::max(0.0, 2 * std::log(static_cast<double>(n) / budget));
  switch (gain) {
    case Gain::none:
      return 1;
    case Gain::floor:
      return std::sqrt(std::max(1.0, squared));
    case Gain::paper:
      return std::sqrt(squared);
    case Gain::algorithm:
      return std::sqrt(squared / head_dim);
  }
  return 1;
}

Gain gain_from(const std::string& name) {
  return name == "paper" ? Gain::paper : name == "algorithm" ? Gain::algorithm : Gain::floor;
}

struct Switches {
  int recent;
  bool all_rows;
  Gain gain;
  bool prior;

  int always_kept(int budget) const { return std::min(recent, budget / 2); }
};

attention::ColumnRequest observe(const Switches& s, const LayerPrompt& prompt, int budget) {
  const int rows = s.all_rows ? prompt.tokens : std::min(std::max(1, s.always_kept(budget)), prompt.tokens);
  attention::ColumnRequest what{{attention::QueryRowSet::Kind::last, rows, {}}, attention::Reduction::sum, {}};
  for (int i = prompt.tokens - rows; i < prompt.tokens; ++i)
    what.power.push_back(static_cast<float>(step_gain(s.gain, i + 1, budget, prompt.head_dim)));
  if (std::all_of(what.power.begin(), what.power.end(), [](float g) { return g == 1; })) what.power.clear();
  return what;
}

/// Squared lengths of the values, averaged with their neighbours, relative to the largest.
std::vector<float> value_prior(const LayerView& view, int head) {
  std::vector<float> out;
  for (const double length : view.value_norms(head)) out.push_back(static_cast<float>(length * length));
  pool(out, {Pool::mean, 7, Pad::valid});
  const float most = *std::max_element(out.begin(), out.end());
  for (float& x : out) x = most > 0 ? x / most : 1.0F;
  return out;
}

/// Accumulated attention of all entries, times the value prior.
Scores accumulated(const LayerView& view, const attention::ColumnStatistics& attention, bool prior) {
  Scores scores = reduce_group(attention, view.shape, Reduce::mean);
  if (!prior) return scores;
  for (int head = 0; head < scores.heads(); ++head) {
    const auto gamma = value_prior(view, head);
    const auto of_head = scores.head(head);
    for (std::size_t j = 0; j < gamma.size(); ++j) of_head[j] *= gamma[j];
  }
  return scores;
}

/// Number of tokens from which a decode step's gain is computed. A lane holds about B entries, so its gain is 1.
enum class Counted : std::uint8_t { lane, position, prompt };

Counted counted_from(const std::string& name, Gain gain) {
  if (name == "auto") return gain == Gain::algorithm ? Counted::position : Counted::lane;
  return name == "position" ? Counted::position : name == "prompt" ? Counted::prompt : Counted::lane;
}

void accumulate_gained(const StepView& view, Counted counted, Gain kind) {
  const int tokens = counted == Counted::position ? view.position + 1 : view.terms.prompt.tokens;
  const double gain = counted == Counted::lane ? 1 : step_gain(kind, tokens, view.terms.budget, view.shape.head_dim);
  std::vector<float> attention;
  for (int head = view.first_head; head < view.end_head; ++head) {
    if (gain == 1) {
      group_mean(view, head, attention);
    } else {
      group_mean_raised(view, head, gain, attention);
    }
    add_to_column(view, head, 0, attention);
    evict_down(view, head, [](const cache::LaneSpan& stretch, int i) { return stretch.column(0)[i]; });
  }
}

Method build_ahakv(const Options& options) {
  const Gain gain = options.text("sgs") == "off" ? Gain::none : gain_from(options.text("gain"));
  const Switches s{options.integer("recent"), options.text("ra") == "off", gain, options.text("vpe") == "on"};
  const Pooling pooling{Pool::mean, odd_kernel(options), Pad::valid};
  Method method;
  const auto attention = method.observers.add(
      observe_columns(s.all_rows ? "softmax with gain of all queries" : "softmax with gain of the recent queries",
                      [s](const LayerPrompt& prompt, int budget) { return observe(s, prompt, budget); }),
      {.ranking = true, .state = options.text("when") == "step"});
  method.selection.always_kept = {"the recent tokens, at most half of the budget", [s](const LayerPrompt&, int budget) {
                                    return AlwaysKept{0, s.always_kept(budget)};
                                  }};
  method.selection.least = {"nothing, with the smallest budget", [](const LayerPrompt&) { return 0; }};
  method.selection.score = {
      s.prior ? "accumulated attention times the value prior, mean-pooled" : "accumulated attention, mean-pooled",
      [s, attention, pooling](const LayerView& view, const AlwaysKept& always_kept) {
        Scores scores = accumulated(view, view[attention], s.prior);
        pool_evictable(scores, always_kept, pooling);
        return scores;
      }};
  method.schedule = Schedule::once;
  if (options.text("when") == "prefill") return method;
  const Counted counted = counted_from(options.text("decode-gain"), gain);
  method.schedule = Schedule::step;
  method.lanes.columns = {"accumulated attention"};
  method.lanes.state = {"accumulated attention times the value prior",
                        [s, attention](const LayerView& view, const Scores&, const AlwaysKept&) {
                          return std::vector{accumulated(view, view[attention], s.prior)};
                        }};
  method.decoding.step = {"the entry with the least accumulated attention",
                          [=](const StepView& view) { accumulate_gained(view, counted, gain); }};
  return method;
}

}  // namespace

/// AhaKV (Gu et al., 2025, "AhaKV: Adaptive Holistic Attention-Driven KV Cache Eviction for Efficient Inference of
/// Large Language Models", section 4, appendix E): attention accumulated over the most recent queries, times a prior
/// from the values' norms. The gain of the softmax keeps its entropy at ln B for any length of the prompt. While
/// decoding, each query adds its attention.
///   recent       recent tokens that are always kept, and whose queries are accumulated, at most half of the budget
///   ra           off: all queries are accumulated
///   sgs          off: the plain softmax
///   vpe          off: no value prior
///   gain         floor: equation 12, but at least 1; paper: equation 12 as it stands, which is 0 up to B keys;
///                algorithm: algorithm 1 to the letter, which divides logits by sqrt(d) before
///                equation 12 divides by it again
///   decode-gain  number of tokens for the gain of a decode step. lane: the lane's, so there is no gain; position: that
///                of the text so far; prompt: the prompt's; auto: position with gain=algorithm, else lane
///   kernel       length of the mean pooling of the scores
///   when         step: evicts at every decode step; prefill: only when the prompt has been read
Preset ahakv() {
  const Option::Choice on{"on", {"on", "off"}};
  return {
      .name = "ahakv",
      .summary =
          "keeps the entries that recent queries attend to most, with a softmax of constant entropy and a prior from "
          "the values",
      .paper =
          "Gu et al. 2025, AhaKV: Adaptive Holistic Attention-Driven KV Cache Eviction for Efficient Inference of "
          "Large Language Models",
      .options =
          {{"recent", Option::Integer{32, 1, 65536},
            "recent tokens that are always kept, and whose queries are accumulated"},
           {"ra", on, "off: all queries are accumulated"},
           {"sgs", on, "off: the plain softmax"},
           {"vpe", on, "off: no value prior"},
           {"gain", Option::Choice{"floor", {"floor", "paper", "algorithm"}},
            "floor: at least 1; paper: no lower bound; algorithm: divided by sqrt(d), and used while decoding, too"},
           {"decode-gain", Option::Choice{"auto", {"auto", "lane", "position", "prompt"}},
            "count for a decode step's gain: entries of the lane, or tokens so far (position); auto: position with "
            "gain=algorithm, else lane"},
           {"kernel", Option::Integer{7, 1, 1025}, "length of the mean pooling of the scores"},
           {"when", Option::Choice{"step", {"step", "prefill"}}, "when entries are evicted"}},
      .build = build_ahakv};
}

}  // namespace winnow::policy::methods
