// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "papers/result.h"

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each function adds a subcommand to `winnow papers`.
void add_papers_show(CLI::App& papers);
void add_papers_run(CLI::App& papers);
void add_papers_report(CLI::App& papers);

/// Results from the records of folders, one for each recipe that was measured there. Throws InputError.
std::vector<papers::Result> results_in(const std::vector<std::string>& folders);

}  // namespace winnow::cli
