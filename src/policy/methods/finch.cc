// SPDX-License-Identifier: Apache-2.0
#include "policy/methods/presets.h"
#include "policy/window.h"

namespace winnow::policy::methods {

/// FINCH (Corallo and Papotti, 2024, "FINCH: Prompt-guided Key-Value Cache Compression for Large Language Models",
/// section 3): the question's queries are the window, each weighted by the number of keys that it sees, without
/// pooling. The paper reads the text in parts and compresses after each; here it is read at once. Options as snapkv,
/// and
///   positions  cache: kept entries get consecutive positions, as in the paper
Preset finch() {
  const WindowDefaults defaults{.window = "question", .kernel = 1, .weights = "keys"};
  return {
      .name = "finch",
      .summary = "keeps the entries that the question's queries attend to most",
      .paper = "Corallo and Papotti 2024, FINCH: Prompt-guided Key-Value Cache Compression for Large Language Models",
      .options = window_options({{"positions", Option::Choice{"cache", {"absolute", "cache"}},
                                  "effective positions of entries: those in the text, or ranks in the cache"}},
                                defaults),
      .build = [](const Options& options) {
        Method method = window_method(options);
        if (options.text("positions") == "cache") method.positions = Positions::cache;
        return method;
      }};
}

}  // namespace winnow::policy::methods
