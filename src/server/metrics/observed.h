// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "server/engine_thread.h"
#include "server/metrics/metrics.h"
#include "server/request_log.h"

namespace winnow::server {

/// Receivers of requests' events; they outlive Observed.
struct Observers {
  Metrics& metrics;
  RequestLog& log;
};

/// Forwards the events of a request, and reports them to the observers. Runs in the HTTP thread.
class Observed : public AnswerListener {
 public:
  /// `record` has the facts known before the request begins; `prompt_tokens` has one number for each prompt. Each
  /// prompt gets `answers` answers.
  Observed(std::shared_ptr<AnswerListener> to, const Observers& observers, RequestRecord record,
           Clock::time_point arrived, const std::vector<int>& prompt_tokens, int answers);

  void accepted() override { to_->accepted(); }
  void refused(std::exception_ptr why) override;
  void read(std::size_t prompt, const CacheStats& stats, std::shared_ptr<const KeptPositions> kept) override;
  void token(std::size_t prompt, int answer, const GeneratedToken& token, const std::string& text) override;
  void ended(std::size_t prompt, PromptEnd end) override;
  void cancelled(std::size_t prompt, PromptEnd end) override;

 private:
  struct Prompt {
    int tokens = 0;
    bool is_read = false;
    std::vector<std::optional<Clock::time_point>> last;  ///< time of the last token of each answer
  };

  void has_read(Prompt& prompt);
  void add_to_record(const PromptEnd& end);

  std::shared_ptr<AnswerListener> to_;
  Observers observers_;
  RequestRecord record_;
  std::set<std::string> reasons_;  ///< of the ends of its answers
  std::size_t ended_ = 0;          ///< number of prompts
  Clock::time_point arrived_;
  std::vector<Prompt> prompts_;
};

}  // namespace winnow::server
