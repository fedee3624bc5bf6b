#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "attention/attention.h"
#include "engine/decode.h"
#include "graph/executor.h"
#include "model/hparams.h"
#include "winnow/session.h"

namespace winnow {

/// What a session runs on.
struct Session::Impl {
  Impl(std::shared_ptr<const Model> m, const SessionOptions& o);

  std::vector<Prefilled> prefill(std::span<const Token> text, std::span<const std::vector<Token>> questions,
                                 std::span<const CacheOptions> caches);
  /// Throws Interrupted.
  void check_stop() const;

  std::shared_ptr<const Model> model;
  SessionOptions options;
  MemoryAccount account;  // before everything that reports to it
  const model::Hparams& hparams;
  attention::Shape shape;
  graph::Executor executor;
  attention::PrefillAttention prefill_attention;
  attention::DecodeAttention decode_attention;
  engine::Stepper stepper;
  std::function<void(double)> progress;
  std::function<bool()> stop;
};

}  // namespace winnow
