// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/records.h"

#include <set>
#include <utility>

#include "eval/process_folders.h"

namespace winnow::cli {

std::vector<eval::Record> records_of(const std::vector<std::string>& folders) {
  std::vector<eval::Record> out;
  std::set<std::pair<std::string, eval::Key>> known;
  for (const auto& folder : folders) {
    for (auto& record : eval::records_in(folder)) {
      if (known.emplace(record.model_hash, record.key).second) out.push_back(std::move(record));
    }
  }
  return out;
}

}  // namespace winnow::cli
