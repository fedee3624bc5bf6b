// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "eval/task.h"

namespace winnow::eval {

const char* name_of(Protocol protocol);

/// How long prompts may be. A sample whose prompt and answer do not fit into the context is an error: nothing is cut
/// silently.
struct PromptLimits {
  enum class Beyond : std::uint8_t { refused, allowed };

  int max_prompt = 0;  ///< tokens to which longer prompts are cut in their middle, as in LongBench; 0: none is cut
  int context = 0;     ///< tokens of prompt and answer; 0: the model's context
  Beyond beyond = Beyond::refused;  ///< what happens to prompts that exceed the context
  std::string rope = {};            ///< the user's RoPE options, as records name them; empty: the file's
};

/// A sample with one protocol, and all caches that are measured together on it.
class Group {
 public:
  /// Cuts a prompt that is longer than `limits` allow. Throws UsageError for a chat template that is not known.
  Group(const Model& model, const Sample& sample, Protocol protocol, std::vector<CacheOptions> caches,
        PromptLimits limits = {});

  /// Removes the caches that have been measured.
  void leave_out(const std::set<Key>& known);
  bool empty() const { return caches_.empty(); }
  /// The records' keys, in the order of the caches.
  std::vector<Key> keys() const;

  /// Whether a cache keeps the whole prompt, and so says nothing about its method.
  bool keeps_all(const Model& model, const CacheOptions& cache) const;

  /// One record for each cache, complete except for the model's hash. Throws InputError when prompt and answer are
  /// longer than the limits allow, and what the session and the measure throw.
  std::vector<Record> measure(Session& session, const Task& task);

 private:
  Key key(const CacheOptions& cache) const;
  int tokens() const;
  int tokens_compressed() const;
  int entries_kept(const Model& model, const CacheOptions& cache) const;
  int beyond_context() const;
  void check_length() const;
  std::string why_not(const Model& model, const CacheOptions& cache) const;
  void leave_out_what_does_not_fit(const Model& model);
  AnswerStart read(Session& session, std::span<const CacheOptions> caches) const;
  std::vector<Record> measure_caches(Session& session, const Task& task);
  void fill_in(const CacheOptions& cache, const CacheStats& stats, double prefill_ms, Record& record) const;

  TokenizedSample tokenized_;
  PromptLimits limits_;  ///< with the context set
  int cut_tokens_ = 0;
  std::vector<CacheOptions> caches_;
  std::vector<std::pair<CacheOptions, std::string>> skipped_;  ///< with the reason
  std::string hash_;
};

}  // namespace winnow::eval
