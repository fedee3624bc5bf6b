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

/// What a method of asking works with.
struct AskContext {
  Session::Impl& session;
  const Joint& joint;
  std::span<const Token> question;
  CacheOptions cache;  ///< of what is made: `full`, or with a budget what the method sets
  const policy::Options& options;
  Asked& asked;  ///< for what is to be reported; `cache` and `logits` are the method's result

  const model::Hparams& hparams() const { return joint.hparams(); }
};

/// Takes the time of a stage until it goes out of scope.
class StageTimer {
 public:
  StageTimer(Asked& asked, std::string name);
  StageTimer(const StageTimer&) = delete;
  StageTimer& operator=(const StageTimer&) = delete;
  ~StageTimer();

 private:
  Asked& asked_;
  std::string name_;
  double begin_;
};

/// A method of asking under its name: kin of policy::Preset.
struct AskMethod {
  std::string name;
  std::string summary;
  std::string paper;
  std::vector<policy::Option> options;
  /// Spec of the cache that is made; one that needs a budget makes the method need it.
  std::string cache_spec = "full";
  bool takes_compressed = false;
  std::function<Steps(const AskContext&)> run;  ///< pauses after each layer
};

/// In the order in which they are listed.
const std::vector<AskMethod>& ask_methods();

namespace methods {
AskMethod samkv();
AskMethod recompute();
AskMethod reuse();
AskMethod multi_infllm();
AskMethod epic();
AskMethod cacheblend();
}  // namespace methods

/// The assembled cache is the result; reads the question over it.
Steps answer(const AskContext& context, Assembly& assembly);

/// Recomputes the same tokens (joint positions, ascending) in every layer while all entries stay: what baselines do.
Steps recompute_everywhere(const AskContext& context, std::vector<std::int32_t> positions);

}  // namespace winnow::documents

namespace winnow {

struct AskSpec::Impl {
  const documents::AskMethod* method;
  policy::Options options;
  std::string canonical;
  std::string full;
};

}  // namespace winnow
