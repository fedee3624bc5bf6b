// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/format.h"
#include "base/printable.h"
#include "cli/inspect/inspect.h"
#include "cli/output.h"
#include "winnow/describe.h"
#include "winnow/error.h"

namespace winnow::cli {

namespace {

using Json = nlohmann::ordered_json;

/// The numbers of layers with and without a window; "" if none has one.
std::string windows_of(const std::vector<LayerInfo>& layers) {
  const auto windowed = [](const LayerInfo& layer) { return layer.window > 0; };
  const auto first = std::find_if(layers.begin(), layers.end(), windowed);
  if (first == layers.end()) return "";
  const auto count = std::count_if(layers.begin(), layers.end(), windowed);
  return fmt::format("  {} of {} layers see a window of {} tokens and are not compressed, the others see all\n", count,
                     layers.size(), first->window);
}

std::string in_files(const ModelDescription& d) { return d.parts == 1 ? "" : fmt::format(" in {} files", d.parts); }

std::string experts_of(const ModelInfo& m) {
  return m.n_expert == 0 ? "" : fmt::format(", {} of {} experts for a token", m.n_expert_used, m.n_expert);
}

/// Shares of the types: "q4_k 71 %, q6_k 28 %, f32 1 %".
std::string types_of(const ModelDescription& d) {
  std::size_t all = 0;
  for (const auto& [type, bytes] : d.file_types) all += bytes;
  std::string out;
  for (const auto& [type, bytes] : d.file_types) {
    const double percent = 100 * static_cast<double>(bytes) / static_cast<double>(all);
    out += fmt::format("{}{} {}", out.empty() ? "" : ", ", type,
                       percent < 1 ? "below 1 %" : fmt::format("{:.0f} %", percent));
  }
  return out.empty() ? "none" : out;
}

std::string kind_of(const ModelDescription& d) {
  const ModelInfo& m = d.info;
  const auto in_memory = d.refusal.empty() ? fmt::format(", {} in memory", format_bytes(m.weight_bytes)) : "";
  return fmt::format("{}\n  {} ({})\n  weights: {}; {} on the disk{}{}\n", m.path,
                     m.arch.empty() ? "no architecture" : brief(m.arch), m.name.empty() ? "unnamed" : brief(m.name),
                     types_of(d), format_bytes(d.file_bytes), in_files(d), in_memory);
}

std::string text_of(const ModelDescription& d) {
  const ModelInfo& m = d.info;
  return kind_of(d) +
         fmt::format(
             "  {}{}, {} tokens in the vocabulary\n{}"
             "  context {} tokens{}; a full f16 cache takes {} per token, {} for the context\n",
             heads_of(m.layers, fmt::format("{} layers, {} query heads on {} KV heads of {} dimensions", m.n_layer,
                                            m.n_head, m.n_head_kv, m.head_dim)),
             experts_of(m), m.n_vocab, windows_of(m.layers), m.context,
             m.context == m.ctx_train ? "" : fmt::format(" by RoPE scaling (trained with {})", m.ctx_train),
             format_bytes(m.kv_bytes_per_token), format_bytes(m.full_cache_bytes(m.context)));
}

/// Facts that the file states.
std::string stated_text(const ModelDescription& d) {
  const ModelInfo& m = d.info;
  std::string facts;
  const auto add = [&](int known, const std::string& fact) {
    if (known != 0) facts += (facts.empty() ? "" : ", ") + fact;
  };
  add(m.n_layer, fmt::format("{} layers", m.n_layer));
  add(m.n_head, fmt::format("{} query heads on {} KV heads of {} dimensions", m.n_head, m.n_head_kv, m.head_dim));
  add(m.n_expert, fmt::format("{} of {} experts for a token", m.n_expert_used, m.n_expert));
  add(m.n_vocab, fmt::format("{} tokens in the vocabulary", m.n_vocab));
  add(m.ctx_train, fmt::format("context {} tokens", m.ctx_train));
  add(d.window, fmt::format("a window of {} tokens in some layers", d.window));
  return kind_of(d) + (facts.empty() ? "" : fmt::format("  {}\n", facts)) + "  winnow does not run it\n";
}

Json description_json(const ModelDescription& d) {
  const ModelInfo& m = d.info;
  Json out{{"path", m.path}, {"runs", d.refusal.empty()}};
  if (!d.refusal.empty()) out["refusal"] = d.refusal;
  out.update({{"arch", m.arch},
              {"name", m.name},
              {"weight_type", m.weight_type},
              {"parts", d.parts},
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
              {"n_params", m.n_params},
              {"weight_bytes", m.weight_bytes},
              {"window", d.window},
              {"file_bytes", d.file_bytes}});
  for (const auto& [type, bytes] : d.file_types) out["file_types"][type] = bytes;
  if (!d.refusal.empty()) return out;
  out.update({{"kv_bytes_per_token", m.kv_bytes_per_token},
              {"window_layers", m.window_layers()},
              {"global_layers", m.n_layer - m.window_layers()}});
  add_layers(out, m.layers);
  return out;
}

}  // namespace

void show_model(const std::string& path, OutputForm form) {
  const ModelDescription d = describe_model(path);
  if (form == OutputForm::json) {
    show_json(description_json(d));
  } else {
    show(d.refusal.empty() ? text_of(d) : stated_text(d));
  }
  if (!d.refusal.empty()) throw ModelError(d.refusal);
}

}  // namespace winnow::cli
