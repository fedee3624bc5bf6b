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
  std::size_t kv = 0;    ///< keys and values that are held
  std::size_t read = 0;  ///< of these, what a decode step attends to
  std::size_t peak = 0;  ///< with work space, since start()
};

/// An engine with its way of keeping sequences, measured against others in turns. The calls come in this order: start()
/// once, then any number of times restore() and read() or steps. All throw what the engine throws.
class Contender {
 public:
  virtual ~Contender() = default;

  /// Reads `depth`, which may be empty, and makes it `batch` sequences.
  virtual void start(std::span<const Token> depth, int batch) = 0;
  /// Back to where start() ended.
  virtual void restore() = 0;
  /// Reads a prompt after the depth of the first sequence.
  virtual void read(std::span<const Token> prompt) = 0;
  /// One decode step: tokens[i] is appended to sequence i. REQUIRES: a depth that is not empty.
  virtual void step(std::span<const Token> tokens) = 0;
  virtual Bytes bytes() const = 0;
};

/// winnow, with a session of its own.
std::unique_ptr<Contender> winnow_contender(std::shared_ptr<const Model> model, const SessionOptions& session,
                                            const CacheOptions& cache);

/// Keys and values of so many tokens of a sequence.
using CacheBytes = std::function<std::size_t(int tokens)>;

/// llama.cpp through libllama, with its full cache, which is allocated whole.
std::unique_ptr<Contender> llama_contender(std::shared_ptr<llama_model> model, const benchmark::LlamaOptions& options,
                                           CacheBytes cache_bytes);

}  // namespace winnow::benchmark
