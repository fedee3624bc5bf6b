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
  Message message;  ///< of the generation, with reasoning apart from the answer
  CacheStats after_prefill;
  CacheStats at_end;
  MemoryUse memory_after_prefill;
  MemoryUse memory_at_end;
  int prompt_tokens = 0;
  int cached_tokens = 0;  ///< of the prompt, found in --texts
  int read_tokens = 0;    ///< tokens read during prefill_ms, without those found and those from --load-kv
  double prefill_ms = 0;
  double first_token_ms = 0;  ///< from the start of prefill
  double decode_ms = 0;       ///< of the tokens after the first

  /// Number of tokens after the first.
  int decoded() const { return generation.tokens.empty() ? 0 : static_cast<int>(generation.tokens.size()) - 1; }
};

/// The record of a run: a single answer is in `answer`, several are in `answers`.
nlohmann::ordered_json record(const RunOptions& options, const Session& session, const std::vector<Answer>& answers,
                              double load_ms);

/// Serializes JSON, replacing invalid UTF-8.
std::string dump(const nlohmann::ordered_json& json, int indent);

/// The cost of a run, for a terminal. `tokens` are read once; `process` is the process's bytes including the weights.
std::string forecast_lines(const Forecast& told, std::int64_t tokens, std::size_t process);

/// Two or three lines for a terminal.
std::string summary(const RunOptions& options, const Answer& answer, double load_ms);

/// A line for a terminal about a file that --save-kv has written.
std::string saved_line(const std::string& path, std::size_t bytes, const CacheStats& stats);

/// The contents of --dump-kept's file.
std::string kept_json(const ModelInfo& model, const Cache& cache, int prompt_tokens, const TextIdentity& text);

/// Build and machine: the kernels' instruction set, ggml's version.
std::string instruction_set();
std::string ggml_version_text();

}  // namespace winnow::cli
