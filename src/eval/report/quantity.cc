// SPDX-License-Identifier: Apache-2.0
#include "eval/report/quantity.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace winnow::eval {

namespace {

constexpr double kMiB = 1 << 20;

/// The most samples that a method has.
int samples_of(const Table& table, const Column& column) {
  int out = 0;
  for (const auto& method : table.methods) {
    const Cell* cell = table.find(method, column);
    if (cell != nullptr) out = std::max(out, cell->samples);
  }
  return out;
}

}  // namespace

Quantity score_of(const std::set<std::string>& values) {
  struct Meaning {
    const char* value;  ///< that tasks with this kind of score have
    const char* title;
    Better better;
  };
  constexpr Meaning kMeanings[] = {
      {"kl", "agreement, %", Better::higher},
      {"perplexity", "next token correct, %", Better::higher},
      {"decode_tps", "bytes saved, %", Better::higher},
      {"tps", "bytes saved, %", Better::higher},
      {"best", "attention kept, %", Better::higher},
      {"bound", "attention kept, %", Better::higher},
      {"position", "kept in the second half, %", Better::unknown},
      {"sparsity", "redundant, %", Better::unknown},
      {"retained", "score in the second half, %", Better::unknown},
      {"explained", "layers that single out a block, %", Better::unknown},
  };
  const auto* const found = std::find_if(std::begin(kMeanings), std::end(kMeanings),
                                         [&](const Meaning& m) { return values.contains(m.value); });
  const bool is_usual = found == std::end(kMeanings);
  return {"", is_usual ? "score" : found->title, is_usual ? Better::higher : found->better, Scale::linear, 1, 0.01};
}

Quantity quantity_of(const std::string& value) {
  static const std::vector<Quantity> known = {
      {"kl", "KL to full, nats", Better::lower, Scale::logarithmic, 3, 1},
      {"perplexity", "perplexity", Better::lower, Scale::linear, 2, 1},
      {"of_full", "of the full cache's score, %", Better::higher, Scale::linear, 1, 0.01},
      {"longest_part", "longest part found, %", Better::higher, Scale::linear, 1, 0.01},
      {"read_ms", "reading, ms", Better::lower, Scale::linear, 0, 1},
      {"ttft_ms", "first token, ms", Better::lower, Scale::linear, 0, 1},
      {"sequence_ratio", "entries kept, %", Better::lower, Scale::linear, 1, 0.01},
      {"recompute_ratio", "recomputed, %", Better::lower, Scale::linear, 1, 0.01},
      {"loss", "loss of the output, L1", Better::lower, Scale::linear, 3, 1},
      {"relative_loss", "relative loss, %", Better::lower, Scale::linear, 1, 0.01},
      {"bound", "bound of the loss, L1", Better::lower, Scale::linear, 2, 1},
      {"qa_f1_zh", "F1 (Chinese), %", Better::higher, Scale::linear, 1, 0.01},
      {"earlier", "earlier paragraphs named, %", Better::unknown, Scale::linear, 1, 0.01},
      {"later", "later paragraphs named, %", Better::unknown, Scale::linear, 1, 0.01},
      {"decode_tps", "decoding, tokens/s", Better::higher, Scale::linear, 1, 1},
      {"decode_tps_8", "decoding 8 together, tokens/s", Better::higher, Scale::linear, 1, 1},
      {"e2e_ms", "all answers, ms", Better::lower, Scale::linear, 0, 1},
      {"tps", "generated tokens/s, reading included", Better::higher, Scale::linear, 1, 1},
      {"batch", "answered together", Better::higher, Scale::linear, 1, 1},
      {"peak_bytes", "peak, MiB", Better::lower, Scale::linear, 1, kMiB},
  };
  const auto found = std::find_if(known.begin(), known.end(), [&](const Quantity& q) { return q.name == value; });
  return found == known.end() ? Quantity{value, value, Better::unknown, Scale::linear, 3, 1} : *found;
}

std::vector<Quantity> quantities_of(const Table& table, const Column& column) {
  std::set<std::string> names;
  for (const auto& method : table.methods) {
    const Cell* cell = table.find(method, column);
    if (cell == nullptr) continue;
    for (const auto& [name, value] : cell->values) names.insert(name);
  }
  std::vector<Quantity> out = {score_of(names)};
  for (const auto& name : names) {
    const bool is_course = name.find('@') != std::string::npos;  // parts of an answer, which have charts
    const bool is_share_of_nothing = name == "of_full" && out.front().better == Better::unknown;
    if (name != "nll" && !is_course && !is_share_of_nothing) out.push_back(quantity_of(name));
  }
  return out;
}

double figure(const Cell& cell, const Quantity& quantity) {
  return (quantity.name.empty() ? cell.score.value : cell.values.at(quantity.name)) / quantity.unit;
}

bool has(const Cell* cell, const Quantity& quantity) {
  return cell != nullptr && cell->samples > 0 && (quantity.name.empty() || cell->values.contains(quantity.name));
}

bool has_all_samples(const Table& table, const Column& column, const Cell* cell) {
  return (cell == nullptr ? 0 : cell->samples) == samples_of(table, column);
}

std::string mib_held(const Table& table, const MethodKey& method) {
  double bytes = 0;
  int samples = 0;
  for (const auto& column : table.columns) {
    const Cell* cell = table.find(method, column);
    if (!has_all_samples(table, column, cell)) return "";
    if (cell == nullptr) continue;
    bytes += cell->bytes_held * cell->samples;
    samples += cell->samples;
  }
  return samples == 0 ? "" : fmt::format("{:.1f}", bytes / samples / kMiB);
}

std::optional<double> best_of(const Table& table, const Column& column, const Quantity& quantity,
                              const std::string& budget) {
  std::optional<double> out;
  if (quantity.better == Better::unknown || budget.empty()) return out;
  for (const auto& method : table.methods) {
    const Cell* cell = table.find(method, column);
    if (method.budget != budget || !has(cell, quantity)) continue;
    const double value = figure(*cell, quantity);
    if (!out || (quantity.better == Better::higher ? value > *out : value < *out)) out = value;
  }
  return out;
}

}  // namespace winnow::eval
