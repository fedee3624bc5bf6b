// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "engine/calibration.h"
#include "engine/decode.h"
#include "engine/sequence.h"
#include "engine/window_lanes.h"
#include "model/hparams.h"
#include "network/executor.h"
#include "winnow/session.h"

namespace winnow::engine {

class KeptTexts;

/// Rows of one graph when a sequence is extended. Enough to amortise reading the weights, and few enough to keep the
/// logits small.
inline constexpr int kExtendRows = 64;

}  // namespace winnow::engine

namespace winnow {

/// Implementation of a session.
struct Session::Impl {
  Impl(std::shared_ptr<const Model> m, const SessionOptions& o);
  ~Impl();

  std::vector<Prefilled> prefill(std::span<const Token> text, std::span<const std::vector<Token>> questions,
                                 std::span<const CacheOptions> caches);
  /// `windows`: window lanes as they were before the tokens; null: the sequence's current ones.
  void compress(engine::Sequence& sequence, std::span<const Token> tokens, const engine::WindowLanes* windows);
  /// Appends the first of `tokens`, as many as pass through all layers together, and returns their number. If they are
  /// all of `tokens`, sets `logits` [n_vocab] to those of the last one. REQUIRES: tokens of the vocabulary, at least
  /// one.
  std::size_t step(engine::Sequence& sequence, std::span<const Token> tokens, std::span<float> logits);
  /// Throws InputError if there are no tokens or unknown ones.
  void check(std::span<const Token> tokens) const;
  /// Begins a pass of `rows` rows that needs `need` bytes besides packed weights.
  network::Pass begin_pass(std::size_t rows, std::size_t need);
  /// Throws Interrupted.
  void check_stop() const;
  /// The device that holds the model's weights; null: the CPU.
  device::Device* device() const;

  /// Makes a pass over a prompt stoppable. Decode steps are short and must not stop half-way, with entries in some
  /// layers only.
  struct Stops {
    explicit Stops(Impl& impl) : executor(impl.executor) { executor.set_stop(impl.stop); }
    ~Stops() { executor.set_stop({}); }
    Stops(const Stops&) = delete;
    Stops& operator=(const Stops&) = delete;
    network::Executor& executor;
  };

  std::shared_ptr<const Model> model;
  SessionOptions options;
  MemoryAccount account;  // before everything that reports to it
  const model::Hparams& hparams;
  std::optional<engine::Calibration> calibration;
  network::Executor executor;
  std::unique_ptr<attention::PrefillAttention> prefill_attention;
  std::unique_ptr<attention::DecodeAttention> decode_attention;
  engine::Stepper stepper;
  std::unique_ptr<engine::KeptTexts> texts;  ///< null: none are stored
  std::function<void(double)> progress;
  std::function<bool()> stop;
};

namespace engine {

/// The parts of a session, for folders that are built on the engine.
inline Session::Impl& parts_of(Session& session) { return session.impl(); }

}  // namespace engine

}  // namespace winnow
