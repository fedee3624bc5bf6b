// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "eval/method.h"
#include "eval/task.h"

namespace winnow::eval {

const char* name_of(Protocol protocol);

/// Limits of a prompt's length. A sample whose prompt and answer do not fit into the context is an error: nothing is
/// cut silently.
struct PromptLimits {
  enum class Beyond : std::uint8_t { refused, allowed };

  int max_prompt = 0;               ///< longer prompts are cut to this number of tokens, as tokenized() does; 0: none
                                    ///< is cut
  int context = 0;                  ///< tokens of prompt and answer; 0: the model's context
  Beyond beyond = Beyond::refused;  ///< handling of prompts that exceed the context
  std::string rope = {};            ///< the user's RoPE options, as records name them; empty: the file's
  std::string calibration = {};     ///< hash of the session's; empty: it has none

  bool operator==(const PromptLimits&) const = default;
};

/// A record's key without the prompt's hash, which needs the prompt's tokens.
Key key_without_prompt(const Sample& sample, Protocol protocol, const Method& method, const PromptLimits& limits);

/// A sample with one protocol, and all methods that are measured together on it.
class Group {
 public:
  /// Cuts a prompt that is longer than `limits` allow. Throws UsageError for an unknown chat template.
  Group(const Model& model, const Sample& sample, Protocol protocol, std::vector<Method> methods,
        PromptLimits limits = {});

  /// Removes the methods that have been measured.
  void leave_out(const std::set<Key>& known);
  bool empty() const { return methods_.empty(); }
  /// The records' keys, in the order of the methods.
  std::vector<Key> keys() const;

  /// True if a method keeps the whole prompt, so that its score would say nothing about it.
  bool keeps_all(const Model& model, const Method& method) const;

  /// Returns one record for each method, complete except for the model's hash. Throws InputError if prompt and answer
  /// are longer than the limits allow, and what the session and the measure throw.
  std::vector<Record> measure(Session& session, const Task& task);

 private:
  Key key(const Method& method) const;
  int tokens_compressed(const Method& method) const;
  int entries_kept(const Model& model, const Method& method) const;
  int beyond_context() const;
  void check_length() const;
  std::string why_not(const Model& model, const Method& method) const;
  void leave_out_what_does_not_fit(const Model& model);
  std::vector<Record> measure_together(Session& session, const Measure& measure, Against against);
  std::vector<Record> measure_whole(Session& session, const WholeMeasure& measure);
  void describe(const Method& method, Record& record) const;

  TokenizedSample tokenized_;
  PromptLimits limits_;  ///< with the context set
  std::vector<Method> methods_;
  std::vector<std::pair<Method, std::string>> skipped_;  ///< with the reason
  std::string hash_;
};

}  // namespace winnow::eval
