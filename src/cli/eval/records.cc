// SPDX-License-Identifier: Apache-2.0
#include "cli/eval/records.h"

#include <set>
#include <utility>

#include "eval/process_folders.h"
#include "eval/report/text.h"

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

std::string tables_of(const std::vector<std::string>& folders) {
  return eval::to_markdown(eval::summarize(records_of(folders)));
}

}  // namespace winnow::cli
