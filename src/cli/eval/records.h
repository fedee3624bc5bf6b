// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/record.h"

namespace winnow::cli {

/// The records of all folders, each once. Throws InputError.
std::vector<eval::Record> records_of(const std::vector<std::string>& folders);

/// The tables of `winnow eval report` for them.
std::string tables_of(const std::vector<std::string>& folders);

}  // namespace winnow::cli
