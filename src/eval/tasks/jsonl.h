// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// Reads a file with one JSON object a line, or a .json file with an array, whose elements count as lines. Reports
/// exceptions of `sample_of` (nlohmann::json::exception, Error) with file and line, and leaves that line out. Throws
/// InputError if the file cannot be read or has no sample.
std::vector<Sample> read_samples(const std::string& path, const TaskOptions& options,
                                 const std::function<Sample(const nlohmann::json& line, int number)>& sample_of);

/// The line's "documents". Throws InputError if there are none, or one is empty or not a string.
std::vector<std::string> documents_of(const nlohmann::json& line);

/// A sample with the fields that all lines have: its id ("id", or the line's number) and "text".
Sample begin_sample(const nlohmann::json& line, int number, const std::string& task);

}  // namespace winnow::eval
