// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "device/device.h"
#include "winnow/kv_type.h"
#include "winnow/model.h"

struct llama_batch;
struct llama_model;
struct llama_context;
struct ggml_threadpool;

namespace winnow::benchmark {

enum class FlashAttention : std::uint8_t { off, on, automatic };

/// How the sequences of a context store their entries.
enum class KvBuffers : std::uint8_t {
  one,       ///< for sequences of any lengths; a copied sequence shares its entries, and attention reads the buffer
             ///< once for all
  one_each,  ///< of equal size; a copied sequence has its own entries, as different texts would
};

/// Number of cells of layers with a sliding window: libllama's swa_full.
enum class WindowCache : std::uint8_t { full_size, window };

struct LlamaOptions {
  int context = 4096;  ///< of all sequences together
  int sequences = 1;
  int threads = 2;
  int batch = 2048;  ///< in one call of llama_decode
  int ubatch = 512;  ///< in one graph
  FlashAttention flash_attention = FlashAttention::off;
  KvBuffers kv_buffers = KvBuffers::one;
  WindowCache window_cache = WindowCache::full_size;
  ElementType kv_type = ElementType::f16;  ///< of keys and values; quantized types need flash attention
};

/// llama.cpp through libllama in this process: the baseline of tests and benchmarks. Uses every buffer type and a
/// persistent thread pool, as llama-bench does. All functions throw Error if libllama fails (a full context, a missing
/// sequence).
class Llama {
 public:
  /// Loads a model's weights, which several objects may share, on a device or, if it is null, on the CPU. Throws
  /// ModelError if libllama cannot load it.
  static std::shared_ptr<llama_model> load(const std::string& path, const device::Device* device = nullptr);

  /// Throws ModelError if libllama cannot create the context.
  Llama(std::shared_ptr<llama_model> model, const LlamaOptions& options);
  Llama(const std::string& path, const LlamaOptions& options) : Llama(load(path), options) {}
  ~Llama();

  /// Removes all sequences.
  void clear();
  /// Appends tokens to a sequence, and returns the last one's logits, [n_vocab].
  std::vector<float> decode(std::span<const Token> tokens, int sequence = 0);
  /// The same, but returns the logits of all tokens, [tokens][n_vocab].
  std::vector<float> decode_all(std::span<const Token> tokens, int sequence = 0);
  /// One decode step: appends tokens[i] to sequence i. Returns logits, [tokens][n_vocab].
  std::vector<float> step(std::span<const Token> tokens);
  /// Removes all but the first `tokens` tokens of a sequence, so that a depth can be measured again.
  void truncate(int sequence, int tokens);
  /// Makes sequence `to` a copy of `from`.
  void copy(int from, int to);

 private:
  struct Free {
    void operator()(llama_context* context) const;
    void operator()(ggml_threadpool* pool) const;
    void operator()(llama_batch* batch) const;
  };
  enum class Output : std::uint8_t { none, last, all };

  void add(Token token, int position, int sequence, bool output);
  void run(std::span<const Token> tokens, int sequence, Output output);
  void compute();
  int length(int sequence) const;

  std::shared_ptr<llama_model> model_;
  std::unique_ptr<ggml_threadpool, Free> pool_;
  std::unique_ptr<llama_context, Free> context_;
  std::unique_ptr<llama_batch, Free> batch_;
  std::size_t vocabulary_ = 0;
};

}  // namespace winnow::benchmark
