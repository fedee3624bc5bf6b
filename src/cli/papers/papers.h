// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace CLI {
class App;
}

namespace winnow::cli {

/// Each adds a subcommand to `winnow papers`.
void add_papers_show(CLI::App& papers);
void add_papers_run(CLI::App& papers);
void add_papers_report(CLI::App& papers);

}  // namespace winnow::cli
