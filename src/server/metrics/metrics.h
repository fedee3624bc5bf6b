// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "server/engine_thread.h"

namespace winnow::server {

/// The reason for an answer's end by vLLM's names: stop, length, abort (cancelled), error.
const char* reason_of_end(const PromptEnd& end, const Generation& answer);

/// Counts events of requests, and exports them for Prometheus. The names are vLLM's, so that dashboards for vLLM show
/// winnow. A request here is one prompt. Thread-safe.
class Metrics {
 public:
  /// `model` is the model's name, `memory` the bytes that may be promised.
  Metrics(const std::string& model, std::size_t memory);
  ~Metrics();

  /// A prompt of `tokens` tokens has been read.
  void read(int tokens);
  /// The first token of a prompt's answers arrived `seconds` after the request.
  void first_token(double seconds);
  /// A token arrived `seconds` after the one before it.
  void next_token(double seconds);
  /// Any token of an answer arrived.
  void token();
  /// A request finished `seconds` after it arrived.
  void answered(const PromptEnd& end, int prompt_tokens, double seconds);
  /// A request was cancelled, or failed.
  void stopped(const PromptEnd& end);
  /// A request was refused before it began; `reason` is its error's code, or else its type.
  void rejected(const std::string& reason);

  /// The metrics in Prometheus's text format, with the engine's current state.
  std::string text(const EngineLoad& load);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::server
