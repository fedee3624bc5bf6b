// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "documents/assembly.h"
#include "documents/joint.h"
#include "documents/steps.h"
#include "engine/session_impl.h"
#include "winnow/ask.h"
#include "winnow/policy/options.h"

namespace winnow::documents {

/// Input of a method that answers from documents.
struct AskContext {
  Session::Impl& session;
  const Joint& joint;
  std::span<const Token> question;
  CacheOptions cache;  ///< of the resulting cache: `full`, or the method's spec with a budget
  const policy::Options& options;
  Asked& asked;  ///< the result: `cache`, `logits`, and statistics to report

  const model::Hparams& hparams() const { return joint.hparams(); }
};

/// Measures the time of a phase until it goes out of scope.
class PhaseTimer {
 public:
  PhaseTimer(Asked& asked, std::string name);
  PhaseTimer(const PhaseTimer&) = delete;
  PhaseTimer& operator=(const PhaseTimer&) = delete;
  ~PhaseTimer();

 private:
  Asked& asked_;
  std::string name_;
  double begin_;
};

/// A named ask method, analogous to policy::Preset.
struct AskMethod {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<policy::Option> options;
  /// Spec of the resulting cache. If it needs a budget, so does the method.
  std::string cache_spec = "full";
  bool takes_compressed = false;
  std::function<Steps(const AskContext&)> run;  ///< pauses after each layer
};

/// All methods, in the order in which they are listed.
const std::vector<AskMethod>& ask_methods();

namespace methods {
AskMethod samkv();
AskMethod recompute();
AskMethod reuse();
AskMethod multi_infllm();
AskMethod epic();
AskMethod cacheblend();
}  // namespace methods

/// Reads the question over the assembled cache, which is the result.
Steps answer(const AskContext& context, Assembly& assembly);

/// Keeps all entries and recomputes the same tokens (joint positions, ascending) in every layer, as baselines do.
Steps recompute_everywhere(const AskContext& context, std::vector<std::int32_t> positions);

}  // namespace winnow::documents
