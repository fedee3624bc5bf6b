// SPDX-License-Identifier: Apache-2.0
#include "cli/bench/rows.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/format.h"
#include "cli/run/report.h"
#include "winnow/recommended.h"
#include "winnow/version.h"

namespace winnow::cli {

namespace {

using benchmark::Engine;
using benchmark::Row;
using Json = nlohmann::ordered_json;

/// Tokens per second.
struct Speed {
  std::vector<double> samples;
  double mean = 0;
  double deviation = 0;  ///< standard deviation of the samples
  double median = 0;
  double least = 0;
  double most = 0;
};

Speed speed_of(const Row& row) {
  Speed out;
  for (const double seconds : row.seconds) out.samples.push_back(row.tokens() / seconds);
  const auto n = static_cast<double>(out.samples.size());
  for (const double s : out.samples) out.mean += s / n;
  double squares = 0;
  for (const double s : out.samples) squares += (s - out.mean) * (s - out.mean);
  out.deviation = n > 1 ? std::sqrt(squares / (n - 1)) : 0;
  out.median = row.tokens() / benchmark::median_seconds(row);
  std::tie(out.least, out.most) = std::apply([](auto a, auto b) { return std::pair(*a, *b); },
                                             std::pair(std::min_element(out.samples.begin(), out.samples.end()),
                                                       std::max_element(out.samples.begin(), out.samples.end())));
  return out;
}

std::string cache_name(const Row& row) {
  std::string out = method_label(row.cache.spec.print());
  if (row.cache.budget) out += " @ " + row.cache.budget->print();
  if (row.cache.kv_type != KvType()) out += ", " + row.cache.kv_type.print();
  return out;
}

bool same_test(const Row& a, const Row& b) {
  return a.prompt == b.prompt && a.generation == b.generation && a.depth == b.depth && a.batch == b.batch &&
         a.beside == b.beside;
}

/// Speed divided by that of the fastest peer in the same test, by the medians.
std::optional<double> over_peers(const Row& row, const std::vector<Row>& rows) {
  if (row.engine != Engine::winnow) return {};
  std::optional<double> peer;
  for (const auto& other : rows) {
    if (other.engine == Engine::winnow || !same_test(row, other)) continue;
    const double seconds = benchmark::median_seconds(other);
    peer = peer ? std::min(*peer, seconds) : seconds;
  }
  if (peer) *peer /= benchmark::median_seconds(row);
  return peer;
}

bool same_cache(const Row& a, const Row& b) { return a.engine == b.engine && cache_name(a) == cache_name(b); }

/// Speed beside other runs as a share of that alone, by the medians.
std::optional<double> over_alone(Row row, const std::vector<Row>& rows) {
  if (row.beside == 0) return {};
  const double seconds = benchmark::median_seconds(row);
  row.beside = 0;
  for (const auto& other : rows) {
    if (same_cache(row, other) && same_test(row, other)) return benchmark::median_seconds(other) / seconds;
  }
  return {};
}

double roofline_share(const Row& row, const BenchSetting& setting) {
  return benchmark::least_seconds(row.work, setting.roofline) / benchmark::median_seconds(row);
}

Json depth_json(const Row& row) {
  const auto& before = row.before;
  return {{"seconds", row.depth > 0 ? Json(before.seconds) : Json()},
          {"least_operations", before.work.operations},
          {"least_bytes", before.work.bytes}};
}

Json row_json(const Row& row, const std::vector<Row>& rows, const BenchSetting& setting) {
  const Speed speed = speed_of(row);
  const auto ratio = over_peers(row, rows);
  const auto share = over_alone(row, rows);
  return {{"engine", benchmark::name_of(row.engine)},
          {"model", setting.model.name.empty() ? setting.model.path : setting.model.name},
          {"weight_type", setting.model.weight_type},
          {"threads", setting.threads},
          {"isa", instruction_set()},
          {"kv", row.cache.spec.print()},
          {"budget", row.cache.budget ? Json(row.cache.budget->print()) : Json()},
          {"kv_type", row.cache.kv_type.print()},
          {"batch", row.batch},
          {"n_prompt", row.prompt},
          {"n_gen", row.generation},
          {"n_depth", row.depth},
          {"beside", row.beside},
          {"avg_ts", speed.mean},
          {"stddev_ts", speed.deviation},
          {"min_ts", speed.least},
          {"median_ts", speed.median},
          {"max_ts", speed.most},
          {"samples_ts", speed.samples},
          {"over_llama_cpp", ratio ? Json(*ratio) : Json()},
          {"over_alone", share ? Json(*share) : Json()},
          {"kv_bytes", row.bytes.kv},
          {"peak_bytes", row.bytes.peak},
          {"least_operations", row.work.operations},
          {"least_bytes", row.work.bytes},
          {"roofline_share", roofline_share(row, setting)},
          {"roofline",
           {{"f32_flops", setting.roofline.f32_rate},
            {"bf16_flops", setting.roofline.bf16_rate},
            {"read_bytes_per_second", setting.roofline.bandwidth}}},
          {"depth_reading", depth_json(row)},
          {"version", kVersion}};
}

/// A value as a CSV field; elements of lists are separated by spaces.
std::string field(const Json& value) {
  if (value.is_null()) return "";
  if (!value.is_array()) return value.is_string() ? fmt::format("\"{}\"", value.get<std::string>()) : value.dump();
  std::string out;
  for (const auto& one : value) out += fmt::format("{}{}", out.empty() ? "" : " ", one.dump());
  return out;
}

std::string csv(const Json& rows) {
  std::string out;
  for (const auto& [key, value] : rows.front().items()) {
    if (!value.is_object()) out += fmt::format("{}{}", out.empty() ? "" : ",", key);
  }
  out += "\n";
  for (const auto& row : rows) {
    std::string line;
    for (const auto& [key, value] : row.items()) {
      if (!value.is_object()) line += fmt::format("{}{}", line.empty() ? "" : ",", field(value));
    }
    out += line + "\n";
  }
  return out;
}

std::string test_name(const Row& row) {
  std::string out = row.prompt > 0 ? fmt::format("pp{}", row.prompt) : fmt::format("tg{}", row.generation);
  if (row.depth > 0) out += fmt::format(" @ d{}", row.depth);
  if (row.batch > 1) out += fmt::format(" × {}", row.batch);
  if (row.beside > 0) out += fmt::format(" beside {}", row.beside);
  return out;
}

std::string ratio_cell(const std::optional<double>& ratio) { return ratio ? fmt::format("{:.2f}", *ratio) : ""; }

std::string markdown(const std::vector<Row>& rows, const BenchSetting& setting) {
  const auto& roof = setting.roofline;
  std::string out =
      fmt::format("{} {}, {} thread{}, {}; roofline here and now: {:.0f} GFLOP/s f32, {} bf16, {:.1f} GB/s read\n\n",
                  setting.model.name.empty() ? setting.model.path : setting.model.name, setting.model.weight_type,
                  setting.threads, setting.threads == 1 ? "" : "s", instruction_set(), roof.f32_rate / 1e9,
                  roof.bf16_rate > 0 ? fmt::format("{:.0f}", roof.bf16_rate / 1e9) : "no", roof.bandwidth / 1e9);
  const bool beside = std::ranges::any_of(rows, [](const Row& row) { return row.beside > 0; });
  out += fmt::format(
      "| engine | cache | test | t/s: median | mean ± deviation | × llama.cpp | {}cache bytes | peak bytes | roofline "
      "|\n|---|---|---|---:|---:|---:|{}---:|---:|---:|\n",
      beside ? "× alone | " : "", beside ? "---:|" : "");
  for (const auto& row : rows) {
    const Speed speed = speed_of(row);
    out += fmt::format("| {} | {} | {} | {:.1f} | {:.1f} ± {:.1f} | {} | ", benchmark::name_of(row.engine),
                       cache_name(row), test_name(row), speed.median, speed.mean, speed.deviation,
                       ratio_cell(over_peers(row, rows)));
    if (beside) out += ratio_cell(over_alone(row, rows)) + " | ";
    out += fmt::format("{} | {} | {:.0f} % |\n", format_bytes(row.bytes.kv), format_bytes(row.bytes.peak),
                       100 * roofline_share(row, setting));
  }
  std::vector<std::string> specs;
  for (const auto& row : rows) specs.push_back(row.cache.spec.print());
  const auto notes = label_notes(specs);
  return notes.empty() ? out : out + "\n" + notes + "\n";
}

}  // namespace

std::string print_rows(const std::vector<Row>& rows, const BenchSetting& setting, RowForm form) {
  if (form == RowForm::md) return markdown(rows, setting);
  Json all = Json::array();
  for (const auto& row : rows) all.push_back(row_json(row, rows, setting));
  if (form == RowForm::json) return dump(all, 2);
  return all.empty() ? "" : csv(all);
}

}  // namespace winnow::cli
