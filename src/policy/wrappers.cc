// SPDX-License-Identifier: Apache-2.0
#include "policy/wrappers.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "policy/chunks.h"
#include "policy/critical.h"
#include "policy/decoding.h"
#include "policy/observers/query_rows.h"
#include "policy/observers/replayed.h"
#include "policy/pages.h"
#include "policy/pieces.h"
#include "policy/refit.h"
#include "policy/repetition.h"
#include "policy/spans.h"
#include "winnow/error.h"
#include "winnow/policy/spread.h"

namespace winnow::policy::wrappers {

namespace {

constexpr const char* kRounds = "it selects entries in two steps, by scores and by values";
constexpr const char* kOneSet = "it keeps one set for all heads of a layer";
constexpr const char* kOneSetOfPieces = "its per=layer keeps one set for all heads of a layer";
constexpr const char* kOwnChoice = "it does not select entries by scores alone";

[[noreturn]] void refuse(const char* wrapper, const Method& inner, const std::string& why) {
  throw UsageError(fmt::format("{}({}) is not possible: {}", wrapper, inner.name, why));
}

/// Checks what all wrappers need: a method that ranks scores.
void check(const char* wrapper, const Method& inner) {
  if (!inner.selection.fixed.empty()) refuse(wrapper, inner, inner.selection.fixed);
  if (!inner.selection.score) refuse(wrapper, inner, fmt::format("{} ranks nothing", inner.name));
}

/// Option `per`.
Option per_option(const char* pieces) {
  return {"per", Option::Choice{"auto", {"auto", "layer", "head"}},
          fmt::format("whether all heads of a layer keep the same {}; auto: yes, unless they share its budget by need",
                      pieces)};
}

Pieces::Per per_from(const std::string& name) {
  return name == "layer" ? Pieces::Per::layer : name == "head" ? Pieces::Per::head : Pieces::Per::undecided;
}

SpanShape::Stop stop_from(const std::string& name) {
  using Stop = SpanShape::Stop;
  return name == "none" ? Stop::none : name == "line" ? Stop::line : Stop::sentence;
}

/// `options` has per_option().
Method with_pieces(const char* wrapper, const Method& inner, DividePart divide, const Options& options) {
  const auto per = per_from(options.text("per"));
  const auto& selection = inner.selection;
  check(wrapper, inner);
  if (selection.pieces) refuse(wrapper, inner, fmt::format("it already keeps {}", selection.pieces->divide.text));
  if (selection.two_rounds) refuse(wrapper, inner, kRounds);
  if (per == Pieces::Per::layer && selection.over_heads)
    refuse(wrapper, inner,
           "per=layer keeps one set for all heads of a layer, but here the heads share the budget by need");
  Method out = inner;
  out.selection.pieces = Pieces{std::move(divide), per};
  keep_pieces(out.selection);
  return out;
}

std::vector<Option> shared_by_need() {
  auto out = adaptive_options();
  out.push_back({"over", Option::Choice{"layer", {"layer", "model"}},
                 "whether the heads of each layer share a budget, or those of all layers, which takes a second pass"});
  return out;
}

/// Makes the heads of all layers share a budget, by scores of a first pass.
void share_over_model(Method& method) {
  if (method.selection.over_layers) refuse("ada", method, "its layers already share the budget as a pyramid");
  if (method.draft) refuse("ada", method, "over=model and its draft each need a second pass");
  method.selection.heads_of_all_layers = true;
  method.selection.over_heads.text += ", of all layers together";
}

}  // namespace

Wrapper ada() {
  return {.name = "ada",
          .summary = "shares a layer's budget among X's heads by need",
          .paper =
              "Feng et al. 2024, Ada-KV: Optimizing KV Cache Eviction by Adaptive Budget Allocation for Efficient LLM "
              "Inference",
          .options = shared_by_need(),
          .apply = [](const Method& inner, const Options& options) {
            if (inner.one_set_per_layer) refuse("ada", inner, kOneSet);
            check("ada", inner);
            if (inner.selection.over_heads) refuse("ada", inner, "its heads already share the budget by need");
            if (inner.selection.pieces && inner.selection.pieces->per == Pieces::Per::layer)
              refuse("ada", inner, kOneSetOfPieces);
            Method out = inner;
            out.selection.over_heads = adaptive(options);
            if (options.text("over") == "model") share_over_model(out);
            if (out.selection.pieces) keep_pieces(out.selection);
            return out;
          }};
}

Wrapper pyramid() {
  return {.name = "pyramid",
          .summary = "gives X's first layers larger budgets than its last",
          .paper = "Cai et al. 2024, PyramidKV: Dynamic KV Cache Compression based on Pyramidal Information Funneling",
          .options = {pyramid_option()},
          .apply = [](const Method& inner, const Options& options) {
            if (inner.one_set_per_layer) refuse("pyramid", inner, "it keeps the same number of entries in every layer");
            check("pyramid", inner);
            if (inner.selection.heads_of_all_layers)
              refuse("pyramid", inner, "the heads of all its layers already share the budget by need");
            if (inner.selection.over_layers)
              refuse("pyramid", inner, "its layers already share the budget as a pyramid");
            Method out = inner;
            out.selection.over_layers = policy::pyramid(options.number("beta"));
            return out;
          }};
}

Wrapper chunk() {
  return {
      .name = "chunk",
      .summary = "keeps whole chunks of consecutive positions, by X's scores",
      .paper =
          "Liu et al. 2025, ChunkKV: Semantic-Preserving KV Cache Compression for Efficient Long-Context LLM Inference",
      .options = {{"length", Option::Integer{20, 1, 65536}, "positions in a chunk"}, per_option("chunks")},
      .apply = [](const Method& inner, const Options& options) {
        return with_pieces("chunk", inner, chunks_of(options.integer("length")), options);
      }};
}

Wrapper span() {
  return {
      .name = "span",
      .summary = "keeps whole words around the entries that X scores highest",
      .paper = "winnow's own",
      .options = {{"before", Option::Number{0.7, 0, 1}, "factor by which a score decays with each entry further back"},
                  {"after", Option::Number{0.92, 0, 1}, "factor by which it decays with each entry further on"},
                  {"power", Option::Number{1, 1, 10},
                   "exponent to which scores below 1 are raised before they are passed on"},
                  {"stop", Option::Choice{"sentence", {"none", "line", "sentence"}},
                   "boundary that scores do not cross; the end of a line ends a sentence, too"},
                  per_option("words")},
      .apply = [](const Method& inner, const Options& options) {
        const SpanShape shape{options.number("before"), options.number("after"), options.number("power"),
                              stop_from(options.text("stop"))};
        return with_pieces("span", inner, spans_of(shape), options);
      }};
}

Wrapper critical() {
  return {
      .name = "critical",
      .summary = "selects a part of the entries also by what their values add to the layer's output",
      .paper = "Feng et al. 2025, Identify Critical KV Cache in LLM Inference from an Output Perturbation Perspective",
      .options = critical_options(),
      .apply = [](const Method& inner, const Options& options) {
        check("critical", inner);
        if (inner.selection.two_rounds) refuse("critical", inner, kRounds);
        if (inner.one_set_per_layer) refuse("critical", inner, kOneSet);
        if (inner.selection.pieces) refuse("critical", inner, "it keeps " + inner.selection.pieces->divide.text);
        if (inner.selection.select) refuse("critical", inner, kOwnChoice);
        if (inner.selection.signed_scores)
          refuse("critical", inner, "its scores may be negative, so they cannot be multiplied by lengths");
        Method out = inner;
        choose_critical(out, options);
        return out;
      }};
}

Wrapper refit() {
  return {.name = "refit",
          .summary = "fits the kept values so that the last queries' outputs stay close to those with all entries",
          .paper = "Zweiger et al. 2026, Fast KV Compaction via Attention Matching",
          .options = refit_options(),
          .apply = [](const Method& inner, const Options& options) {
            if (!inner.evicts()) refuse("refit", inner, "it evicts nothing");
            if (inner.observers.has(kQueryRows)) refuse("refit", inner, "its values are already fitted");
            if (inner.positions == Positions::cache)
              refuse("refit", inner,
                     "positions=cache rotates keys to their ranks, and values are fitted to keys at their positions in "
                     "the text");
            if (inner.decoding.attend) refuse("refit", inner, "its queries do not read all kept entries");
            Method out = inner;
            refit_values(out, options);
            return out;
          }};
}

Wrapper decoding() {
  return {.name = "decoding",
          .summary = "evicts at every decode step, too, by scores that decay",
          .paper = "winnow's own",
          .options = decoding_options(),
          .apply = [](const Method& inner, const Options& options) {
            check("decoding", inner);
            if (inner.retrieves) refuse("decoding", inner, "it already chooses what each query reads");
            if (inner.changes_while_decoding()) refuse("decoding", inner, "it already evicts at every decode step");
            if (inner.one_set_per_layer) refuse("decoding", inner, kOneSet);
            if (inner.lanes.merged_entries > 0)
              refuse("decoding", inner, "it keeps entries that others were merged into");
            Method out = inner;
            evict_while_decoding(out, options);
            return out;
          }};
}

Wrapper kvzip() {
  return {.name = "kvzip",
          .summary = "also keeps entries that the model attends to when it repeats the prompt",
          .paper =
              "winnow's own, after Kim et al. 2025, KVzip: Query-Agnostic KV Cache Compression with Context "
              "Reconstruction",
          .options = joined_repetition_options(),
          .apply = [](const Method& inner, const Options& options) {
            const auto& selection = inner.selection;
            check("kvzip", inner);
            if (inner.observers.has(kReplay)) refuse("kvzip", inner, "it already reads tokens again after the prompt");
            if (inner.one_set_per_layer) refuse("kvzip", inner, kOneSet);
            if (inner.lanes.state && !inner.lanes.state_by_scores)
              refuse("kvzip", inner, "the scores by which it evicts while decoding would not include the repetition");
            if (selection.two_rounds) refuse("kvzip", inner, kRounds);
            if (selection.signed_scores)
              refuse("kvzip", inner,
                     "its scores may be negative, so they cannot be compared with attention from the repetition");
            if (selection.pieces && selection.over_heads)
              refuse("kvzip", inner, "its heads already share the budget by need: put that around kvzip(…)");
            if (selection.pieces && selection.pieces->per == Pieces::Per::layer)
              refuse("kvzip", inner, kOneSetOfPieces);
            if (selection.select && !selection.pieces) refuse("kvzip", inner, kOwnChoice);
            Method out = inner;
            join_repetition(out, options);
            return out;
          }};
}

Wrapper quest() {
  return {.name = "quest",
          .summary = "keeps what X keeps; each query reads the pages of it whose keys may have the largest products",
          .paper =
              "Behnam et al. 2025, RocketKV: Accelerating Long-Context LLM Inference via Two-Stage KV Cache "
              "Compression; Tang et al. 2024, Quest",
          .options = {{"read", Option::Number{0.25, 0, 1}, "share of a KV head's pages that a query reads"},
                      page_option(4),
                      dense_option()},
          .apply = [](const Method& inner, const Options& options) {
            if (inner.retrieves) refuse("quest", inner, "it already chooses what each query reads");
            if (!inner.evicts()) refuse("quest", inner, "it evicts nothing: use quest without brackets");
            if (inner.changes_while_decoding())
              refuse("quest", inner, "it evicts at every decode step, and the entries of a page must stay");
            if (inner.positions != Positions::absolute)
              refuse("quest", inner,
                     "its entries do not stay at their positions in the text, as the bounds of pages require");
            Method out = inner;
            const double share = options.number("read");
            read_pages(out, options, [share](const Terms& terms, int length, int pages) {
              const bool all_fits = std::max(terms.prompt.tokens, length) <= terms.budget;
              return all_fits ? pages : std::max(1, static_cast<int>(std::ceil(share * pages)));
            });
            out.decoding.read_share = share;
            return out;
          }};
}

}  // namespace winnow::policy::wrappers
