// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "server/engine_thread.h"

namespace winnow::server {

/// Why an answer has ended, as vLLM has it: stop, length, abort (it was cancelled), error.
const char* reason_of_end(const PromptEnd& end, const Generation& answer);

/// Counts what happens to requests, and says it as Prometheus reads it. The names are vLLM's, so that dashboards for
/// vLLM show winnow. A request is one prompt here. Any thread may call.
class Metrics {
 public:
  /// For a model of that name, and so many bytes that may be promised.
  Metrics(const std::string& model, std::size_t memory);
  ~Metrics();

  /// A prompt of so many tokens has been read.
  void read(int tokens);
  /// The first token of a prompt's answers has come so many seconds after the request.
  void first_token(double seconds);
  /// A token has come so many seconds after the one before it.
  void next_token(double seconds);
  /// Any token of an answer has come.
  void token();
  /// A request was answered to its end, so many seconds after it came.
  void answered(const PromptEnd& end, int prompt_tokens, double seconds);
  /// A request was cancelled, or has met an error.
  void stopped(const PromptEnd& end);
  /// A request was refused before it began; `reason` is the code of its error, or its type.
  void rejected(const std::string& reason);

  /// The exposition, with what the engine holds now.
  std::string text(const EngineLoad& load);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::server
