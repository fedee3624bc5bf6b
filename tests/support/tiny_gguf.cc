// SPDX-License-Identifier: Apache-2.0
#include "support/tiny_gguf.h"

#include <ggml-cpp.h>
#include <gguf.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

namespace winnow::test {

namespace {

constexpr int kVocabulary = 288;  // <unk> <s> </s>, 256 bytes, padding

class Writer {
 public:
  explicit Writer(const TinyModel& model)
      : m_(model),
        random_(model.seed),
        gguf_(gguf_init_empty(), gguf_free),
        context_(ggml_init({std::size_t{256} << 20U, nullptr, false})) {}

  void write(const std::string& path) {
    keys();
    vocabulary();
    tensors();
    if (!gguf_write_to_file(gguf_.get(), path.c_str(), false)) throw std::runtime_error("cannot write " + path);
  }

 private:
  void number(const std::string& key, int value) {
    gguf_set_val_u32(gguf_.get(), (m_.arch + key).c_str(), static_cast<std::uint32_t>(value));
  }
  void real(const std::string& key, float value) { gguf_set_val_f32(gguf_.get(), (m_.arch + key).c_str(), value); }

  /// One number, or an array where layers are given one by one.
  void numbers(const std::string& key, int TinyLayer::*of) {
    if (m_.layers.empty()) return number(key, m_.layer(0).*of);
    std::vector<std::int32_t> values;
    for (const auto& layer : m_.layers) values.push_back(layer.*of);
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
    gguf_set_val_str(gguf_.get(), "general.name", "tiny");
    number(".block_count", m_.n_layer);
    number(".context_length", m_.ctx_train);
    number(".embedding_length", m_.n_embd);
    numbers(".feed_forward_length", &TinyLayer::n_ff);
    numbers(".attention.head_count", &TinyLayer::n_head);
    numbers(".attention.head_count_kv", &TinyLayer::n_head_kv);
    numbers(".attention.key_length", &TinyLayer::head_dim);
    numbers(".attention.value_length", &TinyLayer::head_dim);
    numbers(".rope.dimension_count", &TinyLayer::n_rot);
    real(".attention.layer_norm_rms_epsilon", 1e-5F);
    rope_bases();
    if (m_.linear_scaling != 0) {
      gguf_set_val_str(gguf_.get(), (m_.arch + ".rope.scaling.type").c_str(), "linear");
      real(".rope.scaling.factor", m_.linear_scaling);
    }
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
    while (tokens.size() < kVocabulary) {
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
  }

  void tensors() {
    matrix("token_embd.weight", m_.n_embd, kVocabulary, 1);
    norm("output_norm.weight", m_.n_embd);
    if (!m_.tied) matrix("output.weight", m_.n_embd, kVocabulary, 1);
    if (m_.rope_factors) vector("rope_freqs.weight", m_.head_dim / 2, 1, 8);
    for (int i = 0; i < m_.n_layer; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
      const TinyLayer layer = m_.layer(i);
      const int q = layer.n_head * layer.head_dim;
      const int kv = layer.n_head_kv * layer.head_dim;
      norm(block + "attn_norm.weight", m_.n_embd);
      matrix(block + "attn_q.weight", m_.n_embd, q, 2);  // logits of some size, so that attention is not flat
      matrix(block + "attn_k.weight", m_.n_embd, kv, 2);
      matrix(block + "attn_v.weight", m_.n_embd, kv, 1);
      matrix(block + "attn_output.weight", q, m_.n_embd, 1);
      if (m_.arch == "qwen2") {
        vector(block + "attn_q.bias", q, -1, 1);
        vector(block + "attn_k.bias", kv, -1, 1);
        vector(block + "attn_v.bias", kv, -1, 1);
      }
      if (m_.arch == "qwen3") {
        norm(block + "attn_q_norm.weight", layer.head_dim);
        norm(block + "attn_k_norm.weight", layer.head_dim);
      }
      norm(block + "ffn_norm.weight", m_.n_embd);
      matrix(block + "ffn_gate.weight", m_.n_embd, layer.n_ff, 1);
      matrix(block + "ffn_up.weight", m_.n_embd, layer.n_ff, 1);
      matrix(block + "ffn_down.weight", layer.n_ff, m_.n_embd, 1);
    }
  }

  void norm(const std::string& name, int n) { vector(name, n, 0.5F, 1.5F); }

  void vector(const std::string& name, int n, float least, float most) {
    ggml_tensor* const tensor = ggml_new_tensor_1d(context_.get(), GGML_TYPE_F32, n);
    std::uniform_real_distribution<float> values(least, most);
    for (int i = 0; i < n; ++i) static_cast<float*>(tensor->data)[i] = values(random_);
    add(tensor, name);
  }

  /// Values of standard deviation scale / sqrt(in), so that products keep the size of their input.
  void matrix(const std::string& name, int in, int out, float scale) {
    ggml_tensor* const tensor = ggml_new_tensor_2d(context_.get(), m_.type, in, out);
    std::normal_distribution<float> values(0, scale / std::sqrt(static_cast<float>(in)));
    std::vector<float> all(static_cast<std::size_t>(in) * static_cast<std::size_t>(out));
    for (float& x : all) x = values(random_);
    const std::vector<float> importance(in, 1.0F);
    ggml_quantize_chunk(m_.type, all.data(), tensor->data, 0, out, in, importance.data());
    add(tensor, name);
  }

  void add(ggml_tensor* tensor, const std::string& name) {
    ggml_set_name(tensor, name.c_str());
    gguf_add_tensor(gguf_.get(), tensor);
  }

  const TinyModel& m_;
  std::mt19937 random_;
  std::unique_ptr<gguf_context, void (*)(gguf_context*)> gguf_;
  ggml_context_ptr context_;
};

}  // namespace

TinyModel tiny_of_heads(const std::string& arch, int heads, int kv_heads, int head_dim) {
  TinyModel m;
  m.arch = arch;
  m.n_head = heads;
  m.n_head_kv = kv_heads;
  m.head_dim = head_dim;
  if (arch == "qwen2") m.n_embd = heads * head_dim;  // llama.cpp knows no other
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

void write_tiny_gguf(const TinyModel& model, const std::string& path) { Writer(model).write(path); }

}  // namespace winnow::test
