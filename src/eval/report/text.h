// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <vector>

#include "eval/summary.h"

namespace winnow::eval {

/// Names with commas between them.
std::string listed(const std::set<std::string>& names);

/// A note about prompts beyond the model's context; "" if there are none.
std::string beyond_note(const Summary& summary);

/// One line for each reason why records were skipped.
std::vector<std::string> skipped_notes(const Summary& summary);

/// The spec that `auto` stands for; "" if no summary has it.
std::string notes_on_methods(const std::vector<Summary>& summaries);

/// Markdown tables: for each protocol the tasks, then categories, lengths and budgets side by side, if there are any.
std::string to_markdown(const std::vector<Summary>& summaries);

/// The columns protocol,task,part,spec,budget,kv_type,samples,skipped,score,low,high,entries,bytes_held, and the tasks'
/// own values as key=value.
std::string to_csv(const std::vector<Summary>& summaries);

}  // namespace winnow::eval
