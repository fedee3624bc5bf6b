#pragma once

#include "cli/options.h"

namespace winnow::cli {

/// `winnow run`: one text with any number of questions, or many prompts from a file. Throws winnow::Error; Interrupted
/// after the summary is out.
void run_command(const RunOptions& options);

/// `winnow run --jsonl IN -o OUT`. Lines that cannot be run are reported with file and line and the others go on;
/// throws InputError at the end if there were any.
void run_jsonl(const RunOptions& options, Session& session);

}  // namespace winnow::cli
