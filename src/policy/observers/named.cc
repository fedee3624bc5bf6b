// SPDX-License-Identifier: Apache-2.0
#include "policy/observers/named.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <utility>

#include "base/as_size.h"
#include "policy/calibrations/predicted_scores.h"
#include "policy/observers/output_lengths.h"
#include "policy/observers/predicted.h"
#include "policy/observers/query_moments.h"
#include "policy/observers/query_rows.h"
#include "policy/observers/replayed.h"
#include "policy/observers/tiles.h"
#include "policy/spec_reader.h"
#include "winnow/policy/score.h"

namespace winnow::policy {

namespace {

using attention::QueryRowSet;

/// Collects rows of f32 or double into one array.
class ArrayOfRows {
 public:
  template <class Row>
  void add(const Row& row) {
    numbers_.insert(numbers_.end(), row.begin(), row.end());
  }
  ResultArray finish(std::string name, std::vector<std::size_t> shape) {
    return {std::move(name), std::move(shape), std::move(numbers_)};
  }

 private:
  std::vector<float> numbers_;
};

ResultArray array_of(const Scores& scores, std::string name) {
  ArrayOfRows out;
  for (int head = 0; head < scores.heads(); ++head) out.add(scores.head(head));
  return out.finish(std::move(name), {as_size(scores.heads()), as_size(scores.size())});
}

std::vector<ResultArray> of_columns(const LayerView& /*view*/, const attention::ColumnStatistics& seen) {
  ArrayOfRows out;
  for (int head = 0; head < seen.query_heads(); ++head) out.add(seen.head(head));
  return {out.finish("", {as_size(seen.query_heads()), as_size(seen.size())})};
}

std::vector<ResultArray> of_moments(const LayerView& view, const attention::QueryMoments& seen) {
  const auto heads = as_size(view.shape.query_heads);
  const auto dim = as_size(view.shape.head_dim);
  ArrayOfRows mean;
  ArrayOfRows covariance;
  for (int head = 0; head < view.shape.query_heads; ++head) {
    mean.add(seen.mean(head));
    covariance.add(seen.covariance(head));
  }
  return {mean.finish("mean", {heads, dim}), covariance.finish("covariance", {heads, dim, dim})};
}

std::vector<ResultArray> of_rows(const LayerView& view, const attention::QueryRows& seen) {
  const std::vector<std::size_t> shape{as_size(seen.size()), as_size(view.shape.query_heads),
                                       as_size(view.shape.head_dim)};
  ArrayOfRows queries;
  ArrayOfRows outputs;
  for (int row = 0; row < seen.size(); ++row) {
    for (int head = 0; head < view.shape.query_heads; ++head) {
      queries.add(seen.query(row, head));
      outputs.add(seen.output(row, head));
    }
  }
  return {queries.finish("queries", shape), outputs.finish("outputs", shape)};
}

std::vector<ResultArray> of_lengths(const LayerView& /*view*/, const OutputLengths& seen) {
  return {array_of(seen.absolute, "absolute"), array_of(seen.euclidean, "euclidean")};
}

std::vector<ResultArray> of_predictions(const LayerView& /*view*/, const Scores& seen) { return {array_of(seen, "")}; }

template <class Result>
ResultArrays shown(Method& method, ObserverPart<Result> part,
                   std::vector<ResultArray> (*arrays)(const LayerView&, const Result&)) {
  const auto seen = method.observers.add(std::move(part), {.ranking = true});
  return [seen, arrays](const LayerView& view) { return arrays(view, view[seen]); };
}

ResultArrays add_attention(Method& method, const Options& options) {
  const int last = options.integer("last");
  return shown(method, last == 0 ? observe_all() : observe_last(last), of_columns);
}

ResultArrays add_tiles(Method& method, const Options& options) {
  return shown(method, observe_tiles({options.integer("length"), options.integer("before"), options.integer("after")}),
               of_columns);
}

ResultArrays add_rows(Method& method, const Options& options) {
  const int last = options.integer("last");
  return shown(method,
               observe_rows(fmt::format("the last {} queries", last),
                            [last](const LayerPrompt&) {
                              return QueryRowSet{QueryRowSet::Kind::last, last, {}};
                            }),
               of_rows);
}

ResultArrays add_moments(Method& method, const Options& options) {
  return shown(method, observe_moments(options.integer("first")), of_moments);
}

ResultArrays add_lengths(Method& method, const Options& /*options*/) {
  return shown(method, observe_output_lengths(), of_lengths);
}

ResultArrays add_predictions(Method& method, const Options& /*options*/) {
  method.calibration = predicted_scores();
  return shown(method, observe_predictions(), of_predictions);
}

ResultArrays add_replay(Method& method, const Options& options) {
  const int last = options.integer("last");
  const auto reduction = options.text("rows") == "sum" ? attention::Reduction::sum : attention::Reduction::max;
  return shown(method,
               observe_replay(fmt::format("the last {} tokens at the positions after the prompt", last),
                              [last, reduction](const LayerPrompt& prompt, int) {
                                const int count = std::min(last, prompt.tokens);
                                Passage passage;
                                passage.first = prompt.tokens - count;
                                passage.count = count;
                                return Replay{{passage}, reduction};
                              }),
               of_columns);
}

Option number_of(std::string name, int value, int least, std::string effect) {
  return {std::move(name), Option::Integer{value, least, 65536}, std::move(effect)};
}

}  // namespace

const std::vector<NamedObserver>& named_observers() {
  static const std::vector<NamedObserver> all{
      {"attention", {number_of("last", 16, 0, "last queries; 0: all")}, add_attention},
      {"tiles",
       {number_of("length", 256, 1, "tokens that attend to one another"),
        number_of("before", 0, 0, "first tokens that are in no tile"),
        number_of("after", 0, 0, "last tokens that are in no tile")},
       add_tiles},
      {"query_rows", {number_of("last", 16, 1, "last queries")}, add_rows},
      {"query_moments", {number_of("first", 4, 0, "first token whose query counts")}, add_moments},
      {"output_lengths", {}, add_lengths},
      {"predictions", {}, add_predictions},
      {"replay",
       {number_of("last", 16, 1, "last tokens that are read again"),
        {"rows", Option::Choice{"max", {"max", "sum"}}, "reduction over them"}},
       add_replay},
  };
  return all;
}

AddedObserver add_named(Method& method, std::string_view spec) {
  SpecReader reader(spec);
  const auto& observer = find_named(named_observers(), reader.name(), "observer");
  const auto given = reader.options(observer.name, observer.options);
  reader.end();
  return {observer.name, observer.add(method, given.values)};
}

}  // namespace winnow::policy
