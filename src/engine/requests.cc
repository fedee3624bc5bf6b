// SPDX-License-Identifier: Apache-2.0
#include "engine/requests.h"

namespace winnow::engine {

std::vector<CachePass> whole_passes(std::span<const CacheOptions> caches) {
  std::vector<CachePass> out;
  for (const auto& options : caches) out.push_back({options});
  return out;
}

std::vector<policy::ObserverRequestPtr> requests_of(const CachePass& cache, const model::Hparams& hparams,
                                                    const model::LayerSpec& spec, const PromptSize& size, int past,
                                                    std::span<const Token> draft) {
  const auto& first = hparams.layer(first_global(hparams));
  const policy::Asking asking{.prompt = prompt_of(spec, size),
                              .budget = budget_entries(cache.options, hparams, size.tokens),
                              .first_layer = prompt_of(first, size),
                              .past = past,
                              .draft = draft};
  return policy::requests_of(method_of(cache.options, spec), asking, cache.reading);
}

std::vector<policy::ObserverRequestPtr> replays_of(std::span<const CachePass> caches, const model::Hparams& hparams,
                                                   const PromptSize& size, int past,
                                                   std::span<const std::vector<Token>> drafts) {
  const auto& spec = hparams.layer(first_global(hparams));
  std::vector<policy::ObserverRequestPtr> out;
  for (std::size_t i = 0; i < caches.size(); ++i) {
    const auto draft = drafts.empty() ? std::span<const Token>() : std::span<const Token>(drafts[i]);
    for (const auto& request : requests_of(caches[i], hparams, spec, size, past, draft)) {
      const auto* const replay = request ? request->replay() : nullptr;
      if (replay == nullptr || replay->passages.empty()) continue;
      if (drafts.empty() && replay->has_draft()) {
        out.push_back(request);
      } else {
        policy::add_requests(std::span(&request, 1), out);
      }
    }
  }
  return out;
}

}  // namespace winnow::engine
