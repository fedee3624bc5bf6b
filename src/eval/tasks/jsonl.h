// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// Reads a file of one JSON object a line, or a .json file with an array of them, whose elements are its lines then.
/// What `sample_of` throws (nlohmann::json::exception, Error) is reported with file and line, and the line left out.
/// Throws InputError when the file cannot be read or no line of it is a sample.
std::vector<Sample> read_samples(const std::string& path, const TaskOptions& options,
                                 const std::function<Sample(const nlohmann::json& line, int number)>& sample_of);

/// Its "documents". Throws InputError when there are none, or one is no string or empty.
std::vector<std::string> documents_of(const nlohmann::json& line);

/// A sample with what all lines have: its id ("id", or the line's number) and "text".
Sample begin_sample(const nlohmann::json& line, int number, const std::string& task);

}  // namespace winnow::eval
