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

  void keys() {
    gguf_set_val_str(gguf_.get(), "general.architecture", m_.arch.c_str());
    gguf_set_val_str(gguf_.get(), "general.name", "tiny");
    number(".block_count", m_.n_layer);
    number(".context_length", m_.ctx_train);
    number(".embedding_length", m_.n_embd);
    number(".feed_forward_length", m_.n_ff);
    number(".attention.head_count", m_.n_head);
    number(".attention.head_count_kv", m_.n_head_kv);
    number(".attention.key_length", m_.head_dim);
    number(".attention.value_length", m_.head_dim);
    number(".rope.dimension_count", m_.head_dim);
    real(".attention.layer_norm_rms_epsilon", 1e-5F);
    real(".rope.freq_base", 10000);
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
    const int q = m_.n_head * m_.head_dim;
    const int kv = m_.n_head_kv * m_.head_dim;
    matrix("token_embd.weight", m_.n_embd, kVocabulary, 1);
    norm("output_norm.weight", m_.n_embd);
    if (!m_.tied) matrix("output.weight", m_.n_embd, kVocabulary, 1);
    if (m_.rope_factors) vector("rope_freqs.weight", m_.head_dim / 2, 1, 8);
    for (int i = 0; i < m_.n_layer; ++i) {
      const std::string block = "blk." + std::to_string(i) + ".";
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
        norm(block + "attn_q_norm.weight", m_.head_dim);
        norm(block + "attn_k_norm.weight", m_.head_dim);
      }
      norm(block + "ffn_norm.weight", m_.n_embd);
      matrix(block + "ffn_gate.weight", m_.n_embd, m_.n_ff, 1);
      matrix(block + "ffn_up.weight", m_.n_embd, m_.n_ff, 1);
      matrix(block + "ffn_down.weight", m_.n_ff, m_.n_embd, 1);
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
    const std::vector<float> importance(static_cast<std::size_t>(in), 1.0F);
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

void write_tiny_gguf(const TinyModel& model, const std::string& path) { Writer(model).write(path); }

}  // namespace winnow::test
