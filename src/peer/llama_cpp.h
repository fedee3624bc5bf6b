#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "winnow/kv_type.h"

struct llama_model;
struct llama_context;
struct ggml_threadpool;

namespace winnow::peer {

struct LlamaOptions {
  int context = 4096;
  int threads = 2;
  int ubatch = 512;
  bool flash_attention = false;
  ElementType kv_type = ElementType::f16;
};

/// llama.cpp through libllama in this process: the baseline that winnow is tested and measured against. Uses every buffer type and a persistent
/// thread pool, as llama-bench does.
class Llama {
 public:
  /// Throws ModelError when libllama cannot load it.
  Llama(const std::string& path, const LlamaOptions& options);
  ~Llama();

  void clear();
  /// Appends tokens to sequence 0; logits of the last one, [n_vocab].
  std::vector<float> decode(std::span<const std::int32_t> tokens);

 private:
  struct Free {
    void operator()(llama_model* model) const;
    void operator()(llama_context* context) const;
    void operator()(ggml_threadpool* pool) const;
  };
  LlamaOptions options_;
  std::unique_ptr<llama_model, Free> model_;
  std::unique_ptr<ggml_threadpool, Free> pool_;
  std::unique_ptr<llama_context, Free> context_;
};

}  // namespace winnow::peer
