// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <vector>

#include "eval/tasks.h"

namespace winnow::eval {

/// The files of the data folder's longbench-mini/, in the order of their names. Throws InputError if there is no such
/// folder.
std::vector<std::string> prompt_files(const TaskOptions& options);

/// The unchanged prompts of such files, `limit` of each, cut in the middle to a number of tokens. The last 64 tokens
/// are the question. Ids are FILE-LINE; the label "file" is the file's name without its extension. Throws InputError.
std::vector<Sample> prompts_of(const Model& model, const TaskOptions& options, const std::string& task, int tokens,
                               std::span<const std::string> files);

}  // namespace winnow::eval
