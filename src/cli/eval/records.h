// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "eval/record.h"

namespace winnow::cli {

/// The records of all folders, without duplicates. Throws InputError.
std::vector<eval::Record> records_of(const std::vector<std::string>& folders);

/// The tables of `winnow eval report` for these folders.
std::string tables_of(const std::vector<std::string>& folders);

}  // namespace winnow::cli
