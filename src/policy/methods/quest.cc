// SPDX-License-Identifier: Apache-2.0
#include "policy/methods/presets.h"
#include "policy/pages.h"

namespace winnow::policy::methods {

/// Quest (Tang et al., 2024, "Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference", section 3):
/// nothing is evicted. Each query reads the pages with the largest upper bound of its products with their keys. The
/// last page is always read, as one of them.
///   page   entries of a page
///   dense  first layers that read everything
Preset quest() {
  return {.name = "quest",
          .summary = "keeps every entry; each query reads the pages whose keys may have the largest products with it",
          .paper = "Tang et al. 2024, Quest: Query-Aware Sparsity for Efficient Long-Context LLM Inference",
          .options = {page_option(16), dense_option()},
          .build = [](const Options& options) {
            Method method;
            method.selection.always_kept = {"nothing", [](const LayerPrompt&, int) { return AlwaysKept{}; }};
            method.selection.least = {"nothing", [](const LayerPrompt&) { return 0; }};
            method.selection.fixed = "quest evicts nothing";
            const int page = options.integer("page");
            read_pages(method, options,
                       [page](const Terms& terms, int, int) { return (terms.budget + page - 1) / page; });
            return method;
          }};
}

}  // namespace winnow::policy::methods
