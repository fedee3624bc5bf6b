// SPDX-License-Identifier: Apache-2.0
#include "policy/window.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "policy/observers/columns.h"
#include "winnow/policy/score.h"

namespace winnow::policy {

namespace {

constexpr int kUsual = 32;  ///< if the question is not known

enum class RowWeights : std::uint8_t { none, keys };

/// Rule for combining the attention of the window's rows into one number for each entry.
struct WindowRows {
  WindowLength length;
  attention::Reduction reduction;
  RowWeights weights;

  attention::ColumnRequest observe(const LayerPrompt& prompt, int budget) const {
    const int rows = std::min(length.observed(prompt, budget), prompt.tokens);
    attention::ColumnRequest out{{attention::QueryRowSet::Kind::last, rows, {}}, reduction};
    if (weights == RowWeights::none) return out;
    for (int keys = prompt.tokens - rows + 1; keys <= prompt.tokens; ++keys)
      out.weight.push_back(static_cast<float>(keys) / static_cast<float>(prompt.tokens));
    return out;
  }

  std::string text() const {
    return fmt::format("{} of the attention of {}{}", reduction == attention::Reduction::sum ? "sum" : "maximum",
                       length.text("queries"),
                       weights == RowWeights::keys ? ", in proportion to the keys that each sees" : "");
  }
};

WindowRows window_rows(const Options& options) {
  return {window_length(options), reduction_from(options.text("rows")),
          options.text("weights") == "keys" ? RowWeights::keys : RowWeights::none};
}

}  // namespace

int WindowLength::kept(const LayerPrompt& prompt, int budget) const {
  const int question = std::min(prompt.question > 0 ? prompt.question : kUsual,
                                static_cast<int>(std::int64_t{budget} * question_percent / 100));
  const int length = most.value_or(question);
  return percent ? std::min(std::max(1, prompt.tokens * *percent / 100), length) : length;
}

std::string WindowLength::text(std::string_view what) const {
  const std::string share = percent ? fmt::format(", at most {} % of the prompt's", *percent) : "";
  return most ? fmt::format("the last {} {}{}", *most, what, share)
              : fmt::format("the question's last {}, at most {} % of the budget{}", what, question_percent, share);
}

std::vector<Option> window_length_options(std::string effect, std::string window) {
  return {{"window", Option::WordOrInteger{std::move(window), 1, 65536, "question"}, std::move(effect)},
          {"window-share", Option::WordOrInteger{"any", 1, 100}, "largest window, in percent of the prompt"},
          {"question-share", Option::Integer{50, 1, 99}, "largest window=question, in percent of the budget"}};
}

WindowLength window_length(const Options& options) {
  return {options.integer_if("window"), options.integer_if("window-share"), options.integer("question-share")};
}

Option rows_option() { return {"rows", Option::Choice{"sum", {"sum", "max"}}, "reduction over the window's queries"}; }

attention::Reduction reduction_from(const std::string& name) {
  return name == "max" ? attention::Reduction::max : attention::Reduction::sum;
}

Option gqa_option() {
  return {"gqa", Option::Choice{"mean", {"mean", "max", "sum"}}, "reduction over the query heads of a KV head"};
}

std::vector<Option> window_options(std::vector<Option> more, const WindowDefaults& defaults) {
  std::vector<Option> out = window_length_options(
      "last queries that are observed, and last entries that are always kept; question: those of the question",
      defaults.window);
  std::vector<Option> rest = {
      rows_option(),
      {"weights", Option::Choice{defaults.weights, {"none", "keys"}},
       "keys: a query's attention counts in proportion to the keys that it sees"},
      {"kernel", Option::Integer{defaults.kernel, 1, 1025}, "odd length of the pooling along positions"},
      {"pool", Option::Choice{"max", {"max", "mean"}}, "pooling of scores"},
      {"pad", Option::Choice{"valid", {"valid", "count"}},
       "divisor of mean pooling at the ends: the entries under the kernel (valid) or its length (count)"},
      gqa_option()};
  std::move(rest.begin(), rest.end(), std::back_inserter(out));
  std::move(more.begin(), more.end(), std::back_inserter(out));
  return out;
}

Method window_method(const Options& options) {
  const WindowRows rows = window_rows(options);
  const WindowLength window = rows.length;
  const Reduce gqa = reduce_from(options.text("gqa"));
  const Pooling pooling{pool_from(options.text("pool")), odd_kernel(options), pad_from(options.text("pad"))};
  Method method;
  const auto attention = method.observers.add(
      observe_columns(rows.text(),
                      [rows](const LayerPrompt& prompt, int budget) { return rows.observe(prompt, budget); }),
      {.ranking = true});
  method.selection.always_kept = {window.text("tokens"), [window](const LayerPrompt& prompt, int budget) {
                                    return AlwaysKept{0, std::min(window.kept(prompt, budget), prompt.tokens)};
                                  }};
  method.selection.least = {
      "the window", [window](const LayerPrompt& prompt) { return std::min(window.least(prompt), prompt.tokens); }};
  method.selection.score = {
      fmt::format("{}-pooled attention of the window, {} over the group", options.text("pool"), options.text("gqa")),
      [attention, gqa, pooling](const LayerView& view, const AlwaysKept& always_kept) {
        Scores scores = reduce_group(view[attention], view.shape, gqa);
        pool_evictable(scores, always_kept, pooling);
        return scores;
      }};
  method.schedule = Schedule::once;
  return method;
}

}  // namespace winnow::policy
