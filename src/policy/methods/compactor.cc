// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/as_size.h"
#include "policy/leverage.h"
#include "policy/methods/presets.h"
#include "policy/observers/tiles.h"
#include "policy/rows.h"
#include "winnow/policy/score.h"
#include "winnow/policy/spread.h"

namespace winnow::policy::methods {

namespace {

struct CompactorSettings {
  Sketch sketch;
  std::optional<int> blend;  ///< percent
  Pooling pooling;
};

std::span<float> evictable_by_leverage(Scores& scores, int head, const AlwaysKept& always_kept) {
  return scores.head(head).subspan(as_size(always_kept.sinks), as_size(scores.size() - always_kept.total()));
}

/// Standardises the scores of evictable entries over the layer: mean 0, standard deviation 1.
void standardise(Scores& scores, const AlwaysKept& always_kept) {
  double sum = 0;
  double count = 0;
  for (int head = 0; head < scores.heads(); ++head) {
    for (const float x : evictable_by_leverage(scores, head, always_kept)) sum += x;
    count += scores.size() - always_kept.total();
  }
  const double mean = sum / count;
  double squares = 0;
  for (int head = 0; head < scores.heads(); ++head) {
    for (const float x : evictable_by_leverage(scores, head, always_kept)) squares += (x - mean) * (x - mean);
  }
  const double deviation = std::max(1e-6, std::sqrt(squares / std::max(1.0, count - 1)));
  for (int head = 0; head < scores.heads(); ++head) {
    for (float& x : evictable_by_leverage(scores, head, always_kept)) x = static_cast<float>((x - mean) / deviation);
  }
}

/// Attention within tiles, times the value's length.
Scores attended(const LayerView& view, const attention::ColumnStatistics& attention, const AlwaysKept& always_kept,
                const Pooling& pooling) {
  Scores scores = reduce_group(attention, view.shape, Reduce::mean);
  for (int head = 0; head < scores.heads(); ++head) {
    const auto of_head = scores.head(head);
    const auto lengths = view.value_norms(head);
    for (std::size_t j = 0; j < lengths.size(); ++j) of_head[j] *= static_cast<float>(lengths[j]);
  }
  pool_evictable(scores, always_kept, pooling);
  return scores;
}

Scores blended(const LayerView& view, const attention::ColumnStatistics& attention, const AlwaysKept& always_kept,
               const CompactorSettings& s) {
  Scores scores = attended(view, attention, always_kept, s.pooling);
  Scores outliers = leverage(view, always_kept, s.sketch);
  standardise(scores, always_kept);
  standardise(outliers, always_kept);
  const double weight =
      s.blend ? *s.blend / 100.0 : std::max(0.0, 1 - static_cast<double>(view.budget) / view.tokens());
  for (int head = 0; head < scores.heads(); ++head) {
    const auto of_head = scores.head(head);
    for (std::size_t j = 0; j < of_head.size(); ++j) of_head[j] += static_cast<float>(weight * outliers.head(head)[j]);
  }
  return scores;
}

std::vector<Option> options_of_compactor() {
  return {{"tile", Option::Integer{256, 1, 4096}, "tokens in a tile, which attend to one another"},
          {"last-tile", Option::Choice{"short", {"short", "padded"}},
           "whether a shorter last tile stays short or is padded with zeros"},
          {"pad", Option::Choice{"valid", {"valid", "count"}},
           "divisor of mean pooling at the ends: the entries under the kernel (valid) or its length (count)"},
          {"sketch", Option::Integer{48, 1, 1024}, "random directions onto which keys are projected"},
          {"seed", Option::Integer{0, 0, 2147483647}, "seed of the directions"},
          {"blend", Option::WordOrInteger{"evicted", 0, 1000},
           "weight of leverage relative to attention, in percent; evicted: the percentage of entries that are evicted"},
          {"floor", Option::Number{0, 0, 1}, "share of the budget that is divided equally among the heads"},
          {"sinks", Option::Integer{8, 0, 65536}, "first tokens that are always kept"},
          {"recent", Option::Integer{4, 0, 65536}, "last tokens that are always kept"}};
}

}  // namespace

/// Compactor (Chari and Van Durme, 2025, "Compactor: Calibrated Query-Agnostic KV Cache Compression with Approximate
/// Leverage Scores", section 3): scores that depend on no question. An entry counts if its key is far from the others,
/// or if tokens of its tile attend to it without a causal mask. The best entries of all heads of a layer together stay.
/// The list below documents the options.
Preset compactor() {
  return {.name = "compactor",
          .summary =
              "keeps entries with keys unlike the others, and those that nearby tokens, earlier and later, attend to",
          .paper =
              "Chari and Van Durme 2025, Compactor: Calibrated Query-Agnostic KV Cache Compression with Approximate "
              "Leverage Scores",
          .options = options_of_compactor(),
          .build = [](const Options& options) {
            const AlwaysKept ends{options.integer("sinks"), options.integer("recent")};
            const auto kept = [ends](const LayerPrompt& prompt) {
              const int sinks = std::min(ends.sinks, prompt.tokens);
              return AlwaysKept{sinks, std::min(ends.recent, prompt.tokens - sinks)};
            };
            const CompactorSettings s{{options.integer("sketch"), static_cast<std::uint64_t>(options.integer("seed"))},
                                      options.integer_if("blend"),
                                      {Pool::mean, 3, pad_from(options.text("pad"))}};
            const auto rest =
                options.text("last-tile") == "padded" ? attention::Tiles::Rest::zeros : attention::Tiles::Rest::nothing;
            const std::string text = fmt::format("the first {} tokens and the last {}", ends.sinks, ends.recent);
            Method method;
            const auto attention = method.observers.add(
                observe_tiles({options.integer("tile"), ends.sinks, ends.recent, rest}), {.ranking = true});
            method.selection.always_kept = {text, [kept](const LayerPrompt& prompt, int) { return kept(prompt); }};
            method.selection.least = {text, [kept](const LayerPrompt& prompt) { return kept(prompt).total(); }};
            method.selection.score = {"attention within tiles times the value's length, plus the key's leverage",
                                      [s, attention](const LayerView& view, const AlwaysKept& always_kept) {
                                        return blended(view, view[attention], always_kept, s);
                                      }};
            method.selection.score_bytes = [s](const LayerPrompt& prompt) { return leverage_bytes(prompt, s.sketch); };
            method.selection.over_heads = adaptive(options.number("floor"), FloorRule::blend);
            method.selection.signed_scores = true;
            method.selection.turns = true;
            method.schedule = Schedule::once;
            return method;
          }};
}

}  // namespace winnow::policy::methods
