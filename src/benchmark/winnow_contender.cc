// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "base/as_size.h"
#include "benchmark/contender.h"

namespace winnow::benchmark {

namespace {

class WinnowContender : public Contender {
 public:
  WinnowContender(std::shared_ptr<const Model> model, const SessionOptions& session, const CacheOptions& cache)
      : session_(std::move(model), session), options_(cache), logits_(as_size(session_.model().info().n_vocab)) {}

  void start(std::span<const Token> depth, int batch) override {
    session_.reset_peak();
    if (!depth.empty()) append(session_.prefill(depth, std::span(&options_, 1)));
    while (!caches_.empty() && static_cast<int>(caches_.size()) < batch) caches_.push_back(caches_.front().clone());
    for (auto& cache : caches_) {
      at_start_.push_back(cache.mark());
      all_.push_back(&cache);
    }
    logits_.resize(logits_.size() * as_size(batch));
    from_nothing_ = caches_.empty();
  }

  void restore() override {
    if (from_nothing_) caches_.clear();
    for (std::size_t i = 0; i < at_start_.size(); ++i) {
      caches_[i].go_back(std::move(at_start_[i]));
      at_start_[i] = caches_[i].mark();
    }
  }

  void read(std::span<const Token> prompt) override {
    if (from_nothing_) {
      append(session_.prefill(prompt, std::span(&options_, 1)));
    } else {
      session_.extend(caches_.front(), prompt);
    }
  }

  void step(std::span<const Token> tokens) override { session_.step(all_, tokens, logits_); }

  Bytes bytes() const override {
    Bytes out{0, 0, session_.memory().peak};
    for (const auto& cache : caches_) {
      const auto stats = cache.stats();
      const double share =
          stats.entries_per_head_mean > 0 ? stats.attended_per_head_mean / stats.entries_per_head_mean : 0;
      out.kv += stats.bytes_held;
      out.read += static_cast<std::size_t>(static_cast<double>(stats.bytes_held) * std::min(1.0, share));
    }
    return out;
  }

 private:
  void append(Prefilled prefilled) { caches_.push_back(std::move(prefilled.caches.front())); }

  Session session_;
  CacheOptions options_;
  std::vector<Cache> caches_;
  std::vector<Cache*> all_;
  std::vector<CacheMark> at_start_;
  std::vector<float> logits_;
  bool from_nothing_ = true;
};

}  // namespace

std::unique_ptr<Contender> winnow_contender(std::shared_ptr<const Model> model, const SessionOptions& session,
                                            const CacheOptions& cache) {
  return std::make_unique<WinnowContender>(std::move(model), session, cache);
}

}  // namespace winnow::benchmark
