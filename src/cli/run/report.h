// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/kept/text_identity.h"
#include "cli/options.h"
#include "winnow/forecast.h"

namespace winnow::cli {

/// One answer with its times and memory.
struct Answer {
  std::string question;
  Generation generation;
  Message message;  ///< of the generation: what was thought is apart from what is said
  CacheStats after_prefill;
  CacheStats at_end;
  MemoryUse memory_after_prefill;
  MemoryUse memory_at_end;
  int prompt_tokens = 0;
  int read_tokens = 0;  ///< those that prefill_ms was spent on: not what --load-kv brought
  double prefill_ms = 0;
  double first_token_ms = 0;  ///< from the start of prefill
  double decode_ms = 0;       ///< of the tokens after the first

  /// Tokens after the first.
  int decoded() const { return generation.tokens.empty() ? 0 : static_cast<int>(generation.tokens.size()) - 1; }
};

/// The record of a run: a single answer stands in `answer`, several in `answers`.
nlohmann::ordered_json record(const RunOptions& options, const Session& session, const std::vector<Answer>& answers,
                              double load_ms);

/// JSON text in which invalid UTF-8 is replaced.
std::string dump(const nlohmann::ordered_json& json, int indent);

/// The cost of a run, for a person; `tokens` are those that it reads once, `process` bytes those with the weights.
std::string forecast_lines(const Forecast& told, std::int64_t tokens, std::size_t process);

/// Two or three lines for a person.
std::string summary(const RunOptions& options, const Answer& answer, double load_ms);

/// A line for a person about a file that --save-kv has written.
std::string saved_line(const std::string& path, std::size_t bytes, const CacheStats& stats);

/// --dump-kept's file.
std::string kept_json(const ModelInfo& model, const Cache& cache, int prompt_tokens, const TextIdentity& text);

/// Build and machine: the instruction set that the kernels use, ggml's version.
std::string instruction_set();
std::string ggml_version_text();

}  // namespace winnow::cli
