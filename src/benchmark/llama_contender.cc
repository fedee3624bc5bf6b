// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <vector>

#include "base/as_size.h"
#include "benchmark/contender.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif

namespace winnow::benchmark {

namespace {

/// Anonymous memory of the process. libllama does not report the size of a context.
std::size_t anonymous_memory() {
#ifdef __GLIBC__
  malloc_trim(0);  // returns freed memory, which would be reused without being counted
#endif
  std::ifstream status("/proc/self/status");
  for (std::string key; status >> key;) {
    std::size_t kib = 0;
    if (key == "RssAnon:" && status >> kib) return kib * 1024;
  }
  return 0;
}

class LlamaContender : public Contender {
 public:
  LlamaContender(std::shared_ptr<llama_model> model, const benchmark::LlamaOptions& options, CacheBytes cache_bytes)
      : before_(anonymous_memory()), llama_(std::move(model), options), cache_bytes_(std::move(cache_bytes)) {
    bytes_.kv = as_size(options.sequences) * cache_bytes_(options.context / options.sequences);
    llama_.decode(std::vector<Token>(std::min(options.ubatch, options.context / options.sequences),
                                     1));  // touches its work space
    llama_.clear();
    bytes_.peak = std::max(bytes_.kv, std::max(anonymous_memory(), before_) - before_);
  }

  void start(std::span<const Token> depth, int batch) override {
    if (!depth.empty()) llama_.decode(depth);
    for (int i = 1; i < batch; ++i) llama_.copy(0, i);
    depth_ = static_cast<int>(depth.size());
    batch_ = batch;
    bytes_.read = as_size(batch) * cache_bytes_(depth_);
  }

  void restore() override {
    if (depth_ == 0) return llama_.clear();
    for (int i = 0; i < batch_; ++i) llama_.truncate(i, depth_);
  }

  void read(std::span<const Token> prompt) override { llama_.decode(prompt); }
  void step(std::span<const Token> tokens) override { llama_.step(tokens); }
  Bytes bytes() const override { return bytes_; }

 private:
  std::size_t before_;
  benchmark::Llama llama_;
  CacheBytes cache_bytes_;
  int depth_ = 0;
  int batch_ = 1;
  Bytes bytes_;
};

}  // namespace

std::unique_ptr<Contender> llama_contender(std::shared_ptr<llama_model> model, const benchmark::LlamaOptions& options,
                                           CacheBytes cache_bytes) {
  return std::make_unique<LlamaContender>(std::move(model), options, std::move(cache_bytes));
}

}  // namespace winnow::benchmark
