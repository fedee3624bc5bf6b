// SPDX-License-Identifier: Apache-2.0
#include "winnow/generate.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/as_size.h"
#include "engine/sampler.h"
#include "winnow/error.h"

namespace winnow {

namespace {

/// Passes on the bytes of an answer, except those that may turn out to be the beginning of a stop text.
class StopFilter {
 public:
  explicit StopFilter(std::span<const std::string> stops) : stops_(stops) {}

  /// Takes bytes; returns true when a stop text is complete: the answer then ends before it.
  bool take(std::string_view bytes) {
    pending_ += bytes;
    for (const auto& stop : stops_) {
      if (const auto at = stop.empty() ? std::string::npos : pending_.find(stop); at != std::string::npos) {
        pending_.resize(at);
        return true;
      }
    }
    return false;
  }
  /// The bytes that are sure.
  std::string release() { return release(pending_.size() - held_back()); }
  /// All bytes: nothing comes any more.
  std::string finish() { return release(pending_.size()); }

 private:
  std::string release(std::size_t n) {
    std::string out = pending_.substr(0, n);
    pending_.erase(0, n);
    return out;
  }
  std::size_t held_back() const {
    std::size_t most = 0;
    for (const auto& stop : stops_) {
      for (std::size_t n = std::min(stop.size(), pending_.size()); n > most; --n) {
        if (pending_.compare(pending_.size() - n, n, stop, 0, n) == 0) most = n;
      }
    }
    return most;
  }

  std::span<const std::string> stops_;
  std::string pending_;
};

/// One sequence of the batch that is still generating.
struct Running {
  int index;
  Cache* cache;
  engine::Sampler sampler;
  StopFilter filter;
  Token last = 0;
};

class Batch {
 public:
  Batch(Session& session, const GenerateOptions& options, const OnText& on_text)
      : session_(session), options_(options), on_text_(on_text), vocabulary_(as_size(session.model().info().n_vocab)) {}

  std::vector<Generation> run(std::span<Cache* const> caches, std::span<const std::vector<float>> first) {
    results_.resize(caches.size());
    for (std::size_t i = 0; i < caches.size(); ++i) {
      const int index = static_cast<int>(i);
      Running sequence{index, caches[i], engine::Sampler(options_.sampling, session_.model().info().n_vocab, index),
                       StopFilter(options_.stop)};
      if (options_.max_tokens > 0 && goes_on(sequence, first[i])) running_.push_back(std::move(sequence));
    }
    try {
      while (!running_.empty()) step();
    } catch (const Interrupted&) {
      for (auto& sequence : running_) end(sequence, FinishReason::interrupted);
    }
    return std::move(results_);
  }

 private:
  void step() {
    std::vector<Cache*> caches;
    std::vector<Token> tokens;
    for (const auto& sequence : running_) {
      caches.push_back(sequence.cache);
      tokens.push_back(sequence.last);
    }
    logits_.resize(running_.size() * vocabulary_);
    session_.step(caches, tokens, logits_);
    std::vector<Running> still;
    for (std::size_t i = 0; i < running_.size(); ++i) {
      if (goes_on(running_[i], std::span(logits_).subspan(i * vocabulary_, vocabulary_)))
        still.push_back(std::move(running_[i]));
    }
    running_ = std::move(still);
  }

  /// Samples the next token of a sequence; false when that ends it.
  bool goes_on(Running& sequence, std::span<const float> logits) {
    auto& result = results_[sequence.index];
    const Token token = sequence.sampler.sample(logits);
    sequence.last = token;
    if (options_.end == EndOfSequence::stops && session_.model().ends(token)) return end(sequence, FinishReason::stop);
    result.tokens.push_back(token);
    if (options_.logprobs > 0) result.logprobs.push_back(engine::log_probabilities(logits, token, options_.logprobs));
    if (sequence.filter.take(session_.model().piece(token))) return end(sequence, FinishReason::stop);
    emit(sequence, sequence.filter.release());
    if (static_cast<int>(result.tokens.size()) >= options_.max_tokens) return end(sequence, FinishReason::length);
    return true;
  }

  bool end(Running& sequence, FinishReason reason) {
    emit(sequence, sequence.filter.finish());
    results_[sequence.index].finish = reason;
    return false;
  }

  void emit(const Running& sequence, const std::string& bytes) {
    if (bytes.empty()) return;
    results_[sequence.index].text += bytes;
    if (on_text_) on_text_(sequence.index, bytes);
  }

  Session& session_;
  const GenerateOptions& options_;
  const OnText& on_text_;
  std::size_t vocabulary_;
  std::vector<Running> running_;
  std::vector<Generation> results_;
  std::vector<float> logits_;
};

}  // namespace

void SamplingOptions::check() const {
  const auto require = [](bool holds, const char* name, double value, const char* range) {
    if (!holds) throw UsageError(fmt::format("{} is {}: it must be {}", name, value, range));
  };
  require(temperature >= 0 && std::isfinite(temperature), "the temperature", temperature, "0 (greedy) or more");
  require(top_k >= 0, "top-k", top_k, "0 (off) or more");
  require(top_p >= 0 && top_p <= 1, "top-p", top_p, "from 0 to 1");
  require(min_p >= 0 && min_p <= 1, "min-p", min_p, "from 0 to 1");
  require(repeat_penalty > 0 && std::isfinite(repeat_penalty), "the repeat penalty", repeat_penalty,
          "above 0 (1 is off)");
}

void GenerateOptions::check() const {
  sampling.check();
  if (max_tokens < 0) throw UsageError(fmt::format("an answer cannot have {} tokens", max_tokens));
  if (logprobs < 0) throw UsageError(fmt::format("cannot report {} alternatives for a token", logprobs));
}

std::vector<Generation> generate(Session& session, std::span<Cache* const> caches,
                                 std::span<const std::vector<float>> logits, const GenerateOptions& options,
                                 const OnText& on_text) {
  options.check();
  return Batch(session, options, on_text).run(caches, logits);
}

}  // namespace winnow
