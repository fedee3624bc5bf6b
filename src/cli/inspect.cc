// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/as_size.h"
#include "base/format.h"
#include "base/printable.h"
#include "cli/commands.h"
#include "cli/kept/command.h"
#include "cli/output.h"
#include "cli/wording.h"
#include "winnow/error.h"
#include "winnow/model.h"
#include "winnow/saved.h"

namespace winnow::cli {

namespace {

enum class OutputForm : std::uint8_t { text, json };

/// Messages as clients of chat APIs write them.
nlohmann::ordered_json messages_json(const std::vector<Message>& messages) {
  auto out = nlohmann::ordered_json::array();
  for (const auto& [role, content] : messages) out.push_back({{"role", name_of(role)}, {"content", content}});
  return out;
}

bool are_equal(const std::vector<LayerInfo>& layers) {
  return std::all_of(layers.begin(), layers.end(), [&](const LayerInfo& layer) { return layer == layers.front(); });
}

/// `equal` where all layers have the same heads; else how many have which, in the order of their first ones.
std::string heads_of(std::vector<LayerInfo> layers, const std::string& equal) {
  for (auto& layer : layers) layer.window = 0;
  if (are_equal(layers)) return equal;
  std::string out;
  for (auto layer = layers.begin(); layer != layers.end(); ++layer) {
    if (std::find(layers.begin(), layer, *layer) != layer) continue;
    const auto count = std::count(layers.begin(), layers.end(), *layer);
    out += fmt::format("{}{} layer{} of {} query heads on {} KV heads of {} dimensions", out.empty() ? "" : ", ", count,
                       count == 1 ? "" : "s", layer->n_head, layer->n_head_kv, layer->head_dim);
  }
  return out;
}

/// How many layers have a window, and how many have none; empty where none has one.
std::string windows_of(const std::vector<LayerInfo>& layers) {
  const auto windowed = [](const LayerInfo& layer) { return layer.window > 0; };
  const auto first = std::find_if(layers.begin(), layers.end(), windowed);
  if (first == layers.end()) return "";
  const auto count = std::count_if(layers.begin(), layers.end(), windowed);
  return fmt::format("  {} of {} layers see a window of {} tokens and are not compressed, the others see all\n", count,
                     layers.size(), first->window);
}

/// Adds the heads of each layer where they differ.
void add_layers(nlohmann::ordered_json& to, const std::vector<LayerInfo>& layers) {
  if (are_equal(layers)) return;
  for (const auto& layer : layers)
    to["layers"].push_back({{"n_head", layer.n_head},
                            {"n_head_kv", layer.n_head_kv},
                            {"head_dim", layer.head_dim},
                            {"window", layer.window}});
}

nlohmann::ordered_json saved_json(const SavedInfo& s) {
  const Conversation& conversation = s.transcript.conversation;
  nlohmann::ordered_json model{
      {"name", s.model_name}, {"arch", s.model_arch},     {"hash", fmt::format("{:016x}", s.model_hash)},
      {"n_layer", s.n_layer}, {"n_head_kv", s.n_head_kv}, {"head_dim", s.head_dim}};
  add_layers(model, s.layers);
  return {{"path", s.path},
          {"format_version", s.version},
          {"spec", s.cache.spec.print()},
          {"budget", s.cache.budget ? nlohmann::ordered_json(s.cache.budget->print()) : nlohmann::ordered_json()},
          {"kv_type", s.cache.kv_type.print()},
          {"model", model},
          {"tokens", s.tokens_seen},
          {"tokens_unread", s.transcript.tokens.size() - as_size(s.tokens_seen)},
          {"prompt", name_of(conversation.format)},
          {"ends", where_it_ends(conversation)},
          {"text_bytes", conversation.text.size()},
          {"messages", messages_json(conversation.messages)},
          {"entries_per_head_mean", s.entries_per_head_mean},
          {"entries_min", s.entries_min},
          {"entries_max", s.entries_max},
          {"bytes", s.bytes},
          {"checksum", s.damage.empty() ? "holds" : "does not hold"}};
}

/// Shows a saved cache's metadata. A wrong checksum is an error, reported after them.
void show_saved(const std::string& path, OutputForm form) {
  const SavedInfo s = describe_saved(path);
  const Conversation& conversation = s.transcript.conversation;
  if (form == OutputForm::json) {
    write_stdout(saved_json(s).dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  } else {
    show(fmt::format(
        "{}\n  a saved cache, format version {}: {}\n  of {} ({}, hash {:016x}): {}\n"
        "  a text of {}, {} messages, {} prompt, ends {}\n"
        "  {:.1f} of {} tokens per head ({} to {}), {}; checksums {}\n",
        s.path, s.version, described(s.cache), s.model_name.empty() ? "unnamed" : brief(s.model_name),
        brief(s.model_arch), s.model_hash,
        heads_of(s.layers, fmt::format("{} layers, {} KV heads of {} dimensions", s.n_layer, s.n_head_kv, s.head_dim)),
        format_bytes(conversation.text.size()), conversation.messages.size(), name_of(conversation.format),
        where_it_ends(conversation), s.entries_per_head_mean, s.tokens_seen, s.entries_min, s.entries_max,
        format_bytes(s.bytes), s.damage.empty() ? "hold" : "do not hold"));
  }
  if (!s.damage.empty()) throw InputError(s.damage);
}

void show_model(const std::string& path, OutputForm form) {
  const auto model = Model::load(path);
  const auto& m = model->info();
  if (form == OutputForm::json) {
    nlohmann::ordered_json out{{"path", m.path},
                               {"arch", m.arch},
                               {"name", m.name},
                               {"weight_type", m.weight_type},
                               {"n_layer", m.n_layer},
                               {"n_embd", m.n_embd},
                               {"n_head", m.n_head},
                               {"n_head_kv", m.n_head_kv},
                               {"head_dim", m.head_dim},
                               {"n_expert", m.n_expert},
                               {"n_expert_used", m.n_expert_used},
                               {"n_vocab", m.n_vocab},
                               {"ctx_train", m.ctx_train},
                               {"context", m.context},
                               {"weight_bytes", m.weight_bytes},
                               {"kv_bytes_per_token", m.kv_bytes_per_token},
                               {"window", m.window()},
                               {"window_layers", m.window_layers()},
                               {"global_layers", m.n_layer - m.window_layers()}};
    add_layers(out, m.layers);
    return write_stdout(out.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n");
  }
  show(fmt::format(
      "{}\n  {} ({}), {} weights, {}\n  {}{}, {} tokens in the vocabulary\n{}"
      "  context {} tokens{}; a full f16 cache takes {} per token, {} for the context\n",
      m.path, m.arch, m.name.empty() ? "unnamed" : brief(m.name), m.weight_type, format_bytes(m.weight_bytes),
      heads_of(m.layers, fmt::format("{} layers, {} query heads on {} KV heads of {} dimensions", m.n_layer, m.n_head,
                                     m.n_head_kv, m.head_dim)),
      m.n_expert == 0 ? "" : fmt::format(", {} of {} experts for a token", m.n_expert_used, m.n_expert), m.n_vocab,
      windows_of(m.layers), m.context,
      m.context == m.ctx_train ? "" : fmt::format(" by RoPE scaling (trained with {})", m.ctx_train),
      format_bytes(m.kv_bytes_per_token), format_bytes(m.full_cache_bytes(m.context))));
}

struct Arguments {
  std::string path;
  bool json = false;
  KeptOptions kept;
};

void inspect(const Arguments& a) {
  if (!a.kept.file.empty()) return show_kept(a.kept);
  if (a.path.empty())
    throw UsageError("nothing to inspect: give a model, a saved cache, or what --dump-kept has written (--kept)");
  const auto form = a.json ? OutputForm::json : OutputForm::text;
  is_saved(a.path) ? show_saved(a.path, form) : show_model(a.path, form);
}

}  // namespace

void add_inspect(CLI::App& app) {
  auto* const command =
      app.add_subcommand("inspect", "say what is in a model or a saved cache, or show what a run has kept");
  const auto a = std::make_shared<Arguments>();
  auto* const path =
      command->add_option("FILE", a->path, "GGUF model, or a cache that run --save-kv or a chat's /save has written");
  command->add_flag("--json", a->json, "as JSON");
  auto* const kept =
      command->add_option("--kept", a->kept.file, "what run --dump-kept has written: show it layer by layer");
  auto* const text =
      command->add_option("--text", a->kept.text, "with --kept: list the passages of this text that most heads keep");
  command->add_option("-m,--model", a->kept.model, "with --text: the model that has read it")->envname("WINNOW_MODEL");
  command->add_option("--system", a->kept.system, "with --text: the system message that it was read with")->needs(text);
  command->add_flag("--raw", a->kept.raw, "with --text: it was read without the chat template")->needs(text);
  command->add_option("-o,--output", a->kept.output, "with --kept: draw an .svg or .png with gnuplot instead")
      ->needs(kept);
  text->needs(kept);
  kept->excludes(path);
  command->footer(
      "Examples:\n  winnow inspect model.gguf\n  winnow inspect long.kv --json\n"
      "  winnow inspect --kept kept.json --text long.txt -m model.gguf");
  command->callback([a] { inspect(*a); });
}

}  // namespace winnow::cli
