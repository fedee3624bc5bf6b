// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <span>

#include "benchmark/llama_cpp.h"
#include "winnow/session.h"

namespace winnow::benchmark {

/// Memory of all sequences together.
struct Bytes {
  std::size_t kv = 0;    ///< keys and values held
  std::size_t read = 0;  ///< of these, the bytes that a decode step reads
  std::size_t peak = 0;  ///< including work space, since start()
};

/// An engine with its options, measured in turns with others. The order of calls: start() once, then any number of
/// times restore(), followed by read() or steps. All functions throw what the engine throws.
class Contender {
 public:
  virtual ~Contender() = default;

  /// Reads `depth`, which may be empty, and copies it to `batch` sequences.
  virtual void start(std::span<const Token> depth, int batch) = 0;
  /// Restores the state after start().
  virtual void restore() = 0;
  /// Reads a prompt after the first sequence's depth.
  virtual void read(std::span<const Token> prompt) = 0;
  /// One decode step: appends tokens[i] to sequence i. REQUIRES: a depth that is not empty.
  virtual void step(std::span<const Token> tokens) = 0;
  virtual Bytes bytes() const = 0;
};

/// winnow, with its own session.
std::unique_ptr<Contender> winnow_contender(std::shared_ptr<const Model> model, const SessionOptions& session,
                                            const CacheOptions& cache);

/// Bytes of the keys and values of a sequence's first `tokens` tokens.
using CacheBytes = std::function<std::size_t(int tokens)>;

/// llama.cpp through libllama, with its full cache, which is allocated at the start.
std::unique_ptr<Contender> llama_contender(std::shared_ptr<llama_model> model, const benchmark::LlamaOptions& options,
                                           CacheBytes cache_bytes);

}  // namespace winnow::benchmark
