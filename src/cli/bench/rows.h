// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "benchmark/bench.h"

namespace winnow::cli {

enum class RowForm : std::uint8_t { md, csv, json };

/// Settings that all rows of a benchmark share.
struct BenchSetting {
  ModelInfo model;
  int threads = 0;
  benchmark::Roofline roofline;
};

/// The rows as a table, as CSV or as a JSON array.
std::string print_rows(const std::vector<benchmark::Row>& rows, const BenchSetting& setting, RowForm form);

}  // namespace winnow::cli
