// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ggml-cpp.h>
#include <gguf.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "network/parity.h"
#include "support/rounding.h"
#include "support/spoilt_gguf.h"
#include "support/tiny_gguf.h"

/// Rounding can change the choice of a token's experts. These functions measure how clear the choice is.
namespace winnow::test {

/// The tensors of a file, read without winnow.
class TensorFile {
 public:
  explicit TensorFile(const std::string& path) {
    ggml_context* context = nullptr;
    gguf_.reset(gguf_init_from_file(path.c_str(), {false, &context}));
    context_.reset(context);
  }
  const ggml_tensor& tensor(const std::string& name) const { return *ggml_get_tensor(context_.get(), name.c_str()); }
  std::vector<float> f32(const std::string& name) const {
    const auto* const data = static_cast<const float*>(tensor(name).data);
    return {data, data + ggml_nelements(&tensor(name))};
  }
  std::vector<char> bytes(const std::string& name) const {
    const auto* const data = static_cast<const char*>(tensor(name).data);
    return {data, data + ggml_nbytes(&tensor(name))};
  }

 private:
  gguf_context_ptr gguf_;
  ggml_context_ptr context_;
};

inline std::string bias_of(int layer, const std::string& part) {
  return "blk." + std::to_string(layer) + "." + part + ".bias";
}
inline std::string tensor_of(int layer, const std::string& part) {
  return "blk." + std::to_string(layer) + "." + part + ".weight";
}

/// The input of a layer's router, [tokens][n_embd]. If the experts output zeros, it is the output of the layer.
inline std::vector<float> before_the_experts(const std::string& path, const TinyModel& model, int layer,
                                             std::span<const std::int32_t> tokens) {
  const std::size_t experts = model.experts() * model.expert_width() * model.n_embd;
  const SpoiltValue none(path, tensor_of(layer, "ffn_down_exps"), 0, experts, 0);
  std::optional<SpoiltValue> no_biases;
  if (tiny_architecture(model.arch).expert_biases)
    no_biases.emplace(path, bias_of(layer, "ffn_down_exps"), 0, model.experts() * model.n_embd, 0.0F);
  std::optional<SpoiltValue> no_shared;
  if (model.shared_width() > 0)
    no_shared.emplace(path, tensor_of(layer, "ffn_down_shexp"), 0, model.shared_width() * model.n_embd, 0.0F);
  Network network(path, 1, 1, static_cast<int>(tokens.size()));
  auto hidden = network.executor().states(static_cast<int>(tokens.size()), "hidden states");
  network.executor().embed(tokens, hidden);
  std::vector<DenseAttention::Row> rows;
  std::vector<std::int32_t> positions;
  for (int i = 0; i < static_cast<int>(tokens.size()); ++i) {
    rows.push_back({0, i});
    positions.push_back(i);
  }
  network.attention().set_rows(rows);
  for (int l = 0; l <= layer; ++l) network.executor().run_layer({}, l, hidden, 0, positions, network.attention());
  std::vector<float> out(tokens.size() * static_cast<std::size_t>(model.n_embd));
  hidden.read(0, out);
  return out;
}

/// How tokens choose their experts, in double precision.
struct Routing {
  double margin = std::numeric_limits<double>::infinity();  ///< of the lowest chosen score over the highest other one
  std::vector<std::set<int>> used;                          ///< experts of all tokens, [layer]

  static Routing of(const std::string& path, const TinyModel& model, std::span<const std::int32_t> tokens) {
    const TensorFile file(path);
    Routing out;
    const auto& row = tiny_architecture(model.arch);
    for (int layer = 0; layer < model.n_layer; ++layer) {
      out.used.emplace_back();
      if (!model.has_experts(layer)) continue;
      const auto hidden = before_the_experts(path, model, layer, tokens);
      const auto norm = file.f32(tensor_of(layer, std::string(row.pre_ffn)));
      const auto router = file.f32(tensor_of(layer, "ffn_gate_inp"));
      const auto bias = row.expert_biases ? file.f32(bias_of(layer, "ffn_gate_inp")) : std::vector<float>();
      const auto choice_bias = row.choice_bias ? file.f32(bias_of(layer, "exp_probs_b")) : std::vector<float>();
      for (std::size_t token = 0; token < tokens.size(); ++token) {
        out.add(std::span(hidden).subspan(token * norm.size(), norm.size()), norm, router, bias, choice_bias,
                model.n_expert_used);
      }
    }
    return out;
  }

 private:
  /// A choice bias is added to sigmoids, which rounding changes less than their logits.
  void add(std::span<const float> hidden, std::span<const float> norm, std::span<const float> router,
           std::span<const float> bias, std::span<const float> choice_bias, int chosen) {
    const std::size_t n = hidden.size();
    double squares = 0;
    for (const float h : hidden) squares += static_cast<double>(h) * h;
    const double scale = 1 / std::sqrt(squares / static_cast<double>(n) + 1e-5);
    std::vector<std::pair<double, int>> scores;
    for (std::size_t expert = 0; expert < router.size() / n; ++expert) {
      double logit = bias.empty() ? 0 : bias[expert];
      for (std::size_t i = 0; i < n; ++i) logit += scale * hidden[i] * norm[i] * router[expert * n + i];
      const double score = choice_bias.empty() ? logit : 1 / (1 + std::exp(-logit)) + choice_bias[expert];
      scores.emplace_back(-score, static_cast<int>(expert));
    }
    std::sort(scores.begin(), scores.end());
    for (int i = 0; i < chosen; ++i) used.back().insert(scores[i].second);
    if (chosen < static_cast<int>(scores.size()))
      margin = std::min(margin, scores[chosen].first - scores[chosen - 1].first);
  }
};

/// Whether rounding cannot swap two of the router's logits in any text of the parity tests. The router's weights
/// enlarge errors of its input by `router_scale`.
inline bool is_clear(const std::string& path, const TinyModel& model) {
  const double least = 2 * tolerance_of(model) * model.router_scale;
  const auto texts = tokens_of_parity(kPrompt, 288);
  return std::all_of(texts.begin(), texts.end(),
                     [&](const auto& tokens) { return Routing::of(path, model, tokens).margin > least; });
}

}  // namespace winnow::test
