// SPDX-License-Identifier: Apache-2.0
#include "policy/suggest.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace winnow::policy {

namespace {

/// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

/// A name that differs in more than half of its letters would mislead.
const std::string* nearest(std::string_view name, const std::vector<std::string>& known) {
  const std::string* best = nullptr;
  std::size_t least = 0;
  for (const auto& word : known) {
    const std::size_t longer = std::max(name.size(), word.size());
    if (2 * (longer - std::min(name.size(), word.size())) > longer) continue;  // cheap check, for names of any length
    const std::size_t changes = distance(name, word);
    if (2 * changes > longer || (best != nullptr && changes >= least)) continue;
    best = &word;
    least = changes;
  }
  return best;
}

std::string suggest(std::string_view name, const std::vector<std::string>& known) {
  if (known.empty()) return "there are none";
  const auto* const near = nearest(name, known);
  return fmt::format("{} are {}", near == nullptr ? "there" : fmt::format("did you mean {}? There", *near),
                     fmt::join(known, ", "));
}

}  // namespace winnow::policy
