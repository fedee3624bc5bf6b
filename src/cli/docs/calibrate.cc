// SPDX-License-Identifier: Apache-2.0
// `winnow docs calibrate`: chooses the layers that decide how many blocks samkv takes.
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/counted.h"
#include "cli/docs/docs.h"
#include "cli/docs/json.h"
#include "cli/docs/options.h"
#include "cli/output.h"

namespace winnow::cli {

namespace {

struct DocsCalibrateArguments : StoreOptions {
  DocumentChoice documents;
  bool json = false;
};

/// Minimum, median and maximum of all documents' exponents; "" if no document has middle blocks.
std::string told_exponents(const Calibration& c) {
  std::vector<float> all;
  for (const auto& document : c.exponents) {
    for (const auto& layer : document) all.insert(all.end(), layer.begin(), layer.end());
  }
  if (all.empty()) return "";
  std::sort(all.begin(), all.end());
  return fmt::format(
      "attention to a block's representative falls with distance^-a; a is {:.2f} to {:.2f}, median {:.2f}\n",
      all.front(), all.back(), all[all.size() / 2]);
}

/// Formats the documents for a terminal.
std::string told_documents(const Calibration& c, std::size_t documents) {
  std::string scores;
  for (const int score : c.scores) scores += (scores.empty() ? "" : " ") + std::to_string(score);
  const bool none = std::ranges::count(c.scores, 0) == static_cast<std::ptrdiff_t>(c.scores.size());
  return fmt::format(
      "{}, of which {} long enough to count. In so many of these each of {} finds the most important block:\n"
      "{}\n"
      "Ask with --method samkv:deciding={}{}\n"
      "{}",
      counted(documents, "document"), counted(c.long_enough, "is", "are"), counted(c.scores.size(), "layer"), scores,
      c.deciding, none ? ", the paper's share of the layers and the default" : "", told_exponents(c));
}

void calibrate_documents(const DocsCalibrateArguments& a) {
  a.documents.check();
  const auto store = open_store(a, MissingStore::is_an_error);
  const auto names = a.documents.names_in(store);
  const Calibration c = store.calibrate(names);
  if (!a.json) return show(told_documents(c, names.size()));
  write_json({{"store", store.where()},
              {"documents", names},
              {"long_enough", c.long_enough},
              {"scores", c.scores},
              {"exponents", c.exponents},
              {"deciding", c.deciding},
              {"method", fmt::format("samkv:deciding={}", c.deciding)}});
}

}  // namespace

void add_docs_calibrate(CLI::App& docs) {
  auto* const command =
      docs.add_subcommand("calibrate", "find the layers that should decide how many blocks samkv keeps");
  const auto a = std::make_shared<DocsCalibrateArguments>();
  add_choice_options(*command, a->documents);
  add_store_option(*command, *a);
  command->add_flag("--json", a->json, "one JSON object on stdout");
  command->footer(
      "The result belongs to the model: use it as an option of samkv for all questions. Documents of fewer than 14 "
      "blocks of 64 tokens do not count.\n"
      "Example:\n  winnow docs calibrate --all\n"
      "  winnow docs ask -m model.gguf --all --method samkv:deciding=6 -p \"How is it reset?\"");
  command->callback([a] { calibrate_documents(*a); });
}

}  // namespace winnow::cli
