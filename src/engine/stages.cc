// SPDX-License-Identifier: Apache-2.0
#include "engine/stages.h"

#include <algorithm>
#include <string>

#include "winnow/policy/method.h"

namespace winnow::engine {

CacheOptions with_enough(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  CacheOptions out = options;
  const int budget =
      std::max(budget_entries(options, hparams, tokens), least_budget(options.spec.method(), hparams, tokens));
  out.budget = Budget::parse(std::to_string(budget));
  return out;
}

std::optional<CacheOptions> options_later(const CacheOptions& options, const model::Hparams& hparams, int tokens) {
  if (options.spec.method().schedule != policy::Schedule::once) return std::nullopt;
  CacheOptions later = with_enough(options, hparams, tokens);
  if (tokens <= budget_entries(later, hparams, tokens)) return std::nullopt;
  return later;
}

std::vector<Stage> stages_of(const RequestText& text, const CacheOptions& keep, const model::Hparams& hparams) {
  if (text.stages.empty()) return {{0, text.tokens.size(), keep, text.asked}};
  std::vector<Stage> out;
  for (const std::size_t end : text.stages) {
    Stage stage{out.empty() ? 0 : out.back().end, end, {}, 0};
    if (!out.empty()) {
      stage.keep = options_later(keep, hparams, stage.tokens());
    } else {
      stage.keep = keep.spec.method().needs_budget() ? with_enough(keep, hparams, stage.tokens()) : keep;
    }
    out.push_back(std::move(stage));
  }
  out.back().asked = text.asked;
  return out;
}

}  // namespace winnow::engine
