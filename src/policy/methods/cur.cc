// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "base/as_size.h"
#include "policy/methods/presets.h"
#include "policy/rows.h"

namespace winnow::policy::methods {

namespace {

struct CurSettings {
  int local;       ///< tokens of a stretch within which lengths are compared; 0: all
  std::string by;  ///< the lengths that count: of keys, of values, or the mean or product of both
};

/// Scales numbers to a sum of 1, unless all are 0.
void divide_by_sum(std::span<double> x) {
  const double sum = std::accumulate(x.begin(), x.end(), 0.0);
  for (double& v : x) v = sum > 0 ? v / sum : 0;
}

/// Square of each length, divided by the sum over its stretch if there are stretches.
std::vector<double> shares_of(std::vector<double> lengths, int local) {
  const std::span all(lengths);
  for (double& x : all) x = std::pow(x, 2);
  for (std::size_t first = 0; local > 0 && first < all.size(); first += as_size(local))
    divide_by_sum(all.subspan(first, std::min(as_size(local), all.size() - first)));
  return lengths;
}

double joint_share(double key, double value, const std::string& by) {
  if (by == "keys") return key;
  if (by == "values") return value;
  return by == "mean" ? (key + value) / 2 : key * value;
}

Scores leverage_by_length(const LayerView& view, const CurSettings& s) {
  Scores scores(view.shape.kv_heads, view.tokens());
  for (int head = 0; head < scores.heads(); ++head) {
    auto out = shares_of(view.key_norms(head), s.local);
    const auto values = shares_of(view.value_norms(head), s.local);
    for (std::size_t j = 0; j < out.size(); ++j) out[j] = joint_share(out[j], values[j], s.by);
    divide_by_sum(out);
    std::copy(out.begin(), out.end(), scores.head(head).begin());
  }
  return scores;
}

}  // namespace

/// CurDKV (Sengupta et al., 2025, "Value-Guided KV Compression for LLMs via Approximated CUR Decomposition"), as in
/// kvpress: squared lengths approximate the leverage of keys and values. The list below documents the options.
Preset cur() {
  return {.name = "cur",
          .summary = "keeps the entries with the longest keys and values among nearby tokens",
          .paper = "Sengupta et al. 2025, Value-Guided KV Compression for LLMs via Approximated CUR Decomposition",
          .options = {{"local", Option::Integer{16, 0, 65536},
                       "nearby tokens with which a length is compared; 0: all tokens"},
                      {"by", Option::Choice{"product", {"product", "mean", "keys", "values"}},
                       "how squared lengths of keys and values are combined, or which of them counts"},
                      {"sinks", Option::Integer{4, 0, 65536}, "first tokens that are always kept"}},
          .build = [](const Options& options) {
            const CurSettings s{options.integer("local"), options.text("by")};
            Method method;
            rank_by(method, "shares of the squared lengths of nearby keys and values", options.integer("sinks"),
                    [s](const LayerView& view, const AlwaysKept&) { return leverage_by_length(view, s); });
            return method;
          }};
}

}  // namespace winnow::policy::methods
