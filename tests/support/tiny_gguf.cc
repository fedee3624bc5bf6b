// SPDX-License-Identifier: Apache-2.0
#include "support/tiny_gguf.h"

#include <ggml-cpp.h>
#include <gguf.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "support/tiny_tensors.h"

namespace winnow::test {

namespace {

constexpr int kSharedCount = 2;  // width of the shared expert, in experts

/// Upper bound on the bytes of all tensors.
std::size_t bytes_of(const TinyModel& m) {
  constexpr std::size_t kBesides = std::size_t{256} << 20U;  // vectors, and ggml's own data of each tensor
  const auto attention = std::size_t{2} * (m.n_head + m.n_head_kv) * m.head_dim;
  const auto ffn = std::size_t{3} * std::max(m.n_ff, m.expert_width() * m.experts() + m.shared_width());
  const auto rows = std::size_t{2} * m.n_vocab + m.n_layer * (attention + ffn);
  return kBesides + rows * m.n_embd * ggml_type_size(m.type) / ggml_blck_size(m.type);
}

/// The flags of layers, repeated or cut to the number of layers.
std::vector<bool> repeated(const std::vector<bool>& flags, int layers) {
  std::vector<bool> out;
  for (std::size_t i = 0; i < static_cast<std::size_t>(layers); ++i) out.push_back(flags[i % flags.size()]);
  return out;
}

class Writer {
 public:
  explicit Writer(const TinyModel& model)
      : m_(model),
        arch_(tiny_architecture(model.arch)),
        gguf_(gguf_init_empty(), gguf_free),
        context_(ggml_init({bytes_of(model), nullptr, false})) {}

  void write(const std::string& path) {
    if (!m_.tokenizer.empty()) copy_tokenizer();  // first: it brings the other file's keys and drops them
    keys();
    if (m_.tokenizer.empty()) vocabulary();
    add_tiny_tensors(m_, gguf_.get(), context_.get());
    if (!gguf_write_to_file(gguf_.get(), path.c_str(), false)) throw std::runtime_error("cannot write " + path);
  }

 private:
  void number(const std::string& key, int value) {
    gguf_set_val_u32(gguf_.get(), (m_.arch + key).c_str(), static_cast<std::uint32_t>(value));
  }
  void real(const std::string& key, float value) { gguf_set_val_f32(gguf_.get(), (m_.arch + key).c_str(), value); }
  void text(const std::string& key, const std::string& value) {
    gguf_set_val_str(gguf_.get(), (m_.arch + key).c_str(), value.c_str());
  }

  /// Writes one number, or an array if the model lists its layers.
  void numbers(const std::string& key, int TinyLayer::*of) {
    if (m_.layers.empty()) return number(key, m_.layer(0).*of);
    each(key, of);
  }

  void each(const std::string& key, int TinyLayer::*of) {
    std::vector<std::int32_t> values;
    const int count = m_.layers.empty() ? m_.n_layer : static_cast<int>(m_.layers.size());
    for (int i = 0; i < count; ++i) values.push_back(m_.layer(i).*of);
    gguf_set_arr_data(gguf_.get(), (m_.arch + key).c_str(), GGUF_TYPE_INT32, values.data(), values.size());
  }

  void rope_bases() {
    if (m_.layers.empty()) return real(".rope.freq_base", 10000);
    std::vector<float> bases;
    for (const auto& layer : m_.layers) bases.push_back(layer.rope_freq_base);
    gguf_set_arr_data(gguf_.get(), (m_.arch + ".rope.freq_base").c_str(), GGUF_TYPE_FLOAT32, bases.data(),
                      bases.size());
  }

  void keys() {
    gguf_set_val_str(gguf_.get(), "general.architecture", m_.arch.c_str());
    gguf_set_val_str(gguf_.get(), "general.name", m_.name.c_str());
    number(".block_count", m_.n_layer);
    number(".context_length", m_.ctx_train);
    number(".embedding_length", m_.n_embd);
    numbers(".feed_forward_length", &TinyLayer::n_ff);
    numbers(".attention.head_count", &TinyLayer::n_head);
    if (arch_.own_window_heads) {
      heads_by_windows();
    } else {
      numbers(".attention.head_count_kv", &TinyLayer::n_head_kv);
      numbers(".attention.key_length", &TinyLayer::head_dim);
      numbers(".attention.value_length", &TinyLayer::head_dim);
      numbers(".rope.dimension_count", &TinyLayer::n_rot);
    }
    real(arch_.norm == NormKind::rms ? ".attention.layer_norm_rms_epsilon" : ".attention.layer_norm_epsilon", 1e-5F);
    rope_bases();
    scaling();
    if (m_.experts() > 0) experts();
    if (m_.shared_kv > 0) number(".attention.shared_kv_layers", m_.shared_kv);
    if (arch_.layer_embeddings) number(".embedding_length_per_layer_input", m_.layer_embedding);
    for (const auto& key : arch_.unused_keys) set(key);
    for (const auto& key : arch_.keys) set(of_layers(key));
    for (const auto& key : m_.keys) set(key);
  }

  void heads_by_windows() {
    each(".attention.head_count_kv", &TinyLayer::n_head_kv);
    for (const char* key : {".attention.key_length", ".attention.value_length", ".rope.dimension_count"}) {
      number(key, m_.head_dim);
      number(key + std::string("_swa"), m_.head_dim / 2);
    }
  }

  void experts() {
    number(".expert_count", m_.experts());
    number(".expert_used_count", m_.n_expert_used);
    if (arch_.expert_width) number(".expert_feed_forward_length", m_.n_ff_expert);
    if (arch_.shared == SharedExpert::counted) {
      number(".expert_shared_count", kSharedCount);
    } else if (m_.shared_width() > 0 && arch_.shared != SharedExpert::feed_forward) {
      number(".expert_shared_feed_forward_length", m_.shared_width());
    }
    if (arch_.leading_dense > 0) number(".leading_dense_block_count", arch_.leading_dense);
  }

  void scaling() {
    const TinyScaling& scaling = m_.scaling;
    if (!scaling.type.empty()) text(".rope.scaling.type", scaling.type);
    if (scaling.factor != 0) real(".rope.scaling.factor", scaling.factor);
    if (scaling.original_context != 0) number(".rope.scaling.original_context_length", scaling.original_context);
    if (scaling.attn_factor != 0) real(".rope.scaling.attn_factor", scaling.attn_factor);
  }

  TinyKey of_layers(TinyKey key) const {
    if (auto* const flags = std::get_if<std::vector<bool>>(&key.value)) *flags = repeated(*flags, m_.n_layer);
    return key;
  }

  /// Replaces a key of the same name.
  void set(const TinyKey& key) {
    const std::string name = m_.arch + key.name;
    if (const auto* flag = std::get_if<bool>(&key.value)) gguf_set_val_bool(gguf_.get(), name.c_str(), *flag);
    if (const auto* whole = std::get_if<std::uint32_t>(&key.value)) gguf_set_val_u32(gguf_.get(), name.c_str(), *whole);
    if (const auto* number = std::get_if<float>(&key.value)) gguf_set_val_f32(gguf_.get(), name.c_str(), *number);
    if (const auto* flags = std::get_if<std::vector<bool>>(&key.value)) {
      const std::vector<std::uint8_t> bytes(flags->begin(), flags->end());
      gguf_set_arr_data(gguf_.get(), name.c_str(), GGUF_TYPE_BOOL, bytes.data(), bytes.size());
    }
    if (const auto* word = std::get_if<std::string>(&key.value))
      gguf_set_val_str(gguf_.get(), name.c_str(), word->c_str());
  }

  void copy_tokenizer() {
    const gguf_context_ptr source(gguf_init_from_file(m_.tokenizer.c_str(), {true, nullptr}));
    if (!source) throw std::runtime_error("cannot read " + m_.tokenizer);
    gguf_set_kv(gguf_.get(), source.get());
    for (std::int64_t i = 0; i < gguf_get_n_kv(source.get()); ++i) {
      const char* key = gguf_get_key(source.get(), i);
      if (!std::string_view(key).starts_with("tokenizer.")) gguf_remove_key(gguf_.get(), key);
    }
    const auto tokens = gguf_find_key(gguf_.get(), "tokenizer.ggml.tokens");
    if (tokens < 0 || std::cmp_not_equal(gguf_get_arr_n(gguf_.get(), tokens), m_.n_vocab))
      throw std::runtime_error(m_.tokenizer + " has not " + std::to_string(m_.n_vocab) + " tokens");
  }

  void vocabulary() {
    constexpr int kNormal = 1;
    constexpr int kUnknown = 2;
    constexpr int kControl = 3;
    constexpr int kByte = 6;
    std::vector<std::string> tokens = {"<unk>", "<s>", "</s>"};
    std::vector<std::int32_t> types = {kUnknown, kControl, kControl};
    for (int byte = 0; byte < 256; ++byte) {
      char name[8];
      std::snprintf(name, sizeof(name), "<0x%02X>", static_cast<unsigned>(byte));
      tokens.emplace_back(name);
      types.push_back(kByte);
    }
    while (std::ssize(tokens) < m_.n_vocab) {
      tokens.push_back("word" + std::to_string(tokens.size()));
      types.push_back(kNormal);
    }
    std::vector<const char*> pointers;
    for (const auto& token : tokens) pointers.push_back(token.c_str());
    const std::vector<float> scores(tokens.size(), 0.0F);
    gguf_set_val_str(gguf_.get(), "tokenizer.ggml.model", "llama");
    gguf_set_arr_str(gguf_.get(), "tokenizer.ggml.tokens", pointers.data(), pointers.size());
    gguf_set_arr_data(gguf_.get(), "tokenizer.ggml.scores", GGUF_TYPE_FLOAT32, scores.data(), scores.size());
    gguf_set_arr_data(gguf_.get(), "tokenizer.ggml.token_type", GGUF_TYPE_INT32, types.data(), types.size());
    gguf_set_val_u32(gguf_.get(), "tokenizer.ggml.bos_token_id", 1);
    gguf_set_val_u32(gguf_.get(), "tokenizer.ggml.eos_token_id", 2);
    gguf_set_val_bool(gguf_.get(), "tokenizer.ggml.add_bos_token", true);
    if (!m_.chat_template.empty()) gguf_set_val_str(gguf_.get(), "tokenizer.chat_template", m_.chat_template.c_str());
    if (!m_.tool_use_template.empty())
      gguf_set_val_str(gguf_.get(), "tokenizer.chat_template.tool_use", m_.tool_use_template.c_str());
  }

  const TinyModel& m_;
  const TinyArchitecture& arch_;
  std::unique_ptr<gguf_context, void (*)(gguf_context*)> gguf_;
  ggml_context_ptr context_;
};

}  // namespace

int TinyModel::rotated() const {
  if (n_rot != 0) return n_rot;
  return tiny_architecture(arch).half_rotated ? head_dim / 2 : head_dim;
}

int TinyModel::experts() const { return n_expert != 0 ? n_expert : tiny_architecture(arch).experts; }

int TinyModel::expert_width() const { return tiny_architecture(arch).expert_width ? n_ff_expert : n_ff; }

int TinyModel::shared_width() const {
  const SharedExpert shared = tiny_architecture(arch).shared;
  if (shared == SharedExpert::none) return 0;
  if (shared == SharedExpert::feed_forward) return n_ff;
  return shared == SharedExpert::counted ? kSharedCount * expert_width() : n_ff_shared;
}

bool TinyModel::has_experts(int layer) const { return experts() > 0 && layer >= tiny_architecture(arch).leading_dense; }

bool TinyModel::has_keys(int layer) const { return layer < n_layer - shared_kv; }

bool TinyModel::has_values(int layer) const {
  if (!has_keys(layer)) return false;
  return all_values || !tiny_architecture(arch).keys_as_values || has_window(layer);
}

bool TinyModel::has_window(int layer) const {
  bool found = false;
  for (const auto* const from : {&tiny_architecture(arch).keys, &keys}) {
    for (const auto& key : *from) {
      const auto* const flags = std::get_if<std::vector<bool>>(&key.value);
      if (flags != nullptr && key.name == ".attention.sliding_window_pattern")
        found = repeated(*flags, n_layer)[static_cast<std::size_t>(layer)];
    }
  }
  return found;
}

TinyLayer TinyModel::layer(int i) const {
  if (!layers.empty()) return layers[i];
  if (tiny_architecture(arch).own_window_heads && has_window(i))
    return {n_head, n_head, head_dim / 2, rotated() / 2, 10000, n_ff};
  return {n_head, n_head_kv, head_dim, rotated(), 10000, n_ff};
}

TinyModel tiny_of(const std::string& arch) {
  const TinyModel usual;
  return tiny_of_heads(arch, usual.n_head, usual.n_head_kv, usual.head_dim);
}

TinyModel tiny_of_heads(const std::string& arch, int heads, int kv_heads, int head_dim) {
  const TinyArchitecture& row = tiny_architecture(arch);
  TinyModel m;
  m.arch = arch;
  m.n_layer = row.layers;
  m.n_head = heads;
  m.n_head_kv = row.own_kv_heads ? heads : kv_heads;
  m.head_dim = head_dim;
  if (row.heads_fill_width) m.n_embd = heads * head_dim;
  return m;
}

TinyModel tiny_of_different_layers() {
  TinyModel model;
  model.ctx_train = 4096;
  model.layers = {
      {6, 2, 64, 64, 10000, 128}, {4, 4, 32, 32, 1000000, 160}, {3, 1, 96, 48, 500, 96}, {6, 3, 64, 64, 1000000, 128}};
  model.n_layer = static_cast<int>(model.layers.size());
  return model;
}

TinyModel tiny_with_windows(std::uint32_t window, const std::vector<bool>& layers) {
  TinyModel model = tiny_of_heads("gemma3", 4, 2, 32);
  model.n_layer = static_cast<int>(layers.size());
  model.keys = {{".attention.sliding_window", window}, {".attention.sliding_window_pattern", layers}};
  return model;
}

void write_tiny_gguf(const TinyModel& model, const std::string& path) { Writer(model).write(path); }

}  // namespace winnow::test
