#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "winnow/model.h"

namespace winnow::cli {

namespace {

void show(const std::string& path, bool json) {
  const auto model = Model::load(path);
  const auto& m = model->info();
  // An f16 key and value of every head and layer.
  const std::size_t token_bytes =
      4U * static_cast<std::size_t>(m.n_layer) * static_cast<std::size_t>(m.n_head_kv) * static_cast<std::size_t>(m.head_dim);
  if (json) {
    const nlohmann::ordered_json out{{"path", m.path},
                                     {"arch", m.arch},
                                     {"name", m.name},
                                     {"weight_type", m.weight_type},
                                     {"n_layer", m.n_layer},
                                     {"n_embd", m.n_embd},
                                     {"n_head", m.n_head},
                                     {"n_head_kv", m.n_head_kv},
                                     {"head_dim", m.head_dim},
                                     {"n_vocab", m.n_vocab},
                                     {"ctx_train", m.ctx_train},
                                     {"weight_bytes", m.weight_bytes},
                                     {"kv_bytes_per_token", token_bytes}};
    return write_stdout(out.dump(2) + "\n");
  }
  write_stdout(fmt::format(
      "{}\n  {} ({}), {} weights, {}\n  {} layers, {} query heads on {} KV heads of {} dimensions, {} tokens in the vocabulary\n"
      "  trained context {} tokens; a full f16 cache takes {} per token, {} for the context\n",
      m.path, m.arch, m.name.empty() ? "unnamed" : m.name, m.weight_type, format_bytes(m.weight_bytes), m.n_layer, m.n_head, m.n_head_kv,
      m.head_dim, m.n_vocab, m.ctx_train, format_bytes(token_bytes), format_bytes(token_bytes * static_cast<std::size_t>(m.ctx_train))));
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto* const command = app.add_subcommand("inspect", "say what is in a model file");
  const auto path = std::make_shared<std::string>();
  const auto json = std::make_shared<bool>(false);
  command->add_option("MODEL", *path, "GGUF model")->required();
  command->add_flag("--json", *json, "as JSON");
  command->footer("Example:\n  winnow inspect model.gguf");
  command->callback([path, json] { show(*path, *json); });
}

}  // namespace winnow::cli
