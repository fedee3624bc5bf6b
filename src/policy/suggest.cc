// SPDX-License-Identifier: Apache-2.0
#include "policy/suggest.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <utility>

namespace winnow::policy {

namespace {

/// Letters to replace, add, remove, or swap with the next one (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before;  // of the row before the last one
  std::vector<std::size_t> last;
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      const bool are_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (are_swapped) row[j] = std::min(row[j], before[j - 2] + 1);
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
