// SPDX-License-Identifier: Apache-2.0
// `winnow docs`: documents that are read once and stored.
#include "cli/docs/docs.h"

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace winnow::cli {

void add_docs(CLI::App& app) {
  auto* const docs = app.add_subcommand("docs", "read documents once, store them, and ask about several together");
  docs->require_subcommand(1);
  add_docs_add(*docs);
  add_docs_ask(*docs);
  add_docs_calibrate(*docs);
  add_docs_store(*docs);
  docs->footer(
      "Examples:\n  winnow docs add -m model.gguf manual.txt faq.txt --tag support\n"
      "  winnow docs ask -m model.gguf --tag support -p \"How is it reset?\"\n  winnow docs list\n"
      "  winnow docs verify --store redis://cache.example:6379\n  winnow docs gc --max-bytes 20GiB");
}

}  // namespace winnow::cli
