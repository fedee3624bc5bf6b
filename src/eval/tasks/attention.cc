// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include "base/clock.h"
#include "eval/attention/measures.h"
#include "eval/tasks/all.h"
#include "eval/tasks/prompts.h"
#include "winnow/policy/method.h"

namespace winnow::eval {

namespace {

constexpr int kObservedTokens = 2048;
constexpr int kObservedAnswer = 16;
constexpr const char* kFolder = "longbench-mini";
constexpr unsigned kOptions = TaskInfo::length | TaskInfo::max_prompt;

/// Wraps a measure: its time for all caches goes into their records.
Measure timed(Measure measure) {
  return [measure = std::move(measure)](Session& session, const TokenizedSample& tokenized, std::vector<Cache>& caches,
                                        std::vector<std::vector<float>> logits) {
    const auto begin = Clock::now();
    auto out = measure(session, tokenized, caches, std::move(logits));
    const double ms = ms_since(begin);
    for (auto& record : out) record.timings.decode_ms = ms;
    return out;
  };
}

/// LongBench prompts of all kinds, `limit` from each file, each at all lengths.
Task of(const char* name, Measure measure, const Model& model, const TaskOptions& options) {
  Task out{{}, timed(std::move(measure))};
  const auto files = prompt_files(options);
  for (const int length : options.lengths.empty() ? std::vector{kObservedTokens} : options.lengths) {
    for (auto& sample : prompts_of(model, options, name, length, files)) {
      sample.id += fmt::format("-{}", length);
      sample.labels["length"] = std::to_string(length);
      sample.max_tokens = 0;
      out.samples.push_back(std::move(sample));
    }
  }
  return out;
}

/// Refuses methods that merge: merged entries are not lost, and the entries they merge into have changed.
std::string why_no_loss(const Method& method) {
  if (!method.cache().spec.method().lanes.merge) return {};
  return fmt::format(
      "attention/loss cannot measure {}: it changes the vectors of kept entries, but the bound only holds for eviction",
      method.spec());
}

Task make_loss(const char* name, const Model& model, const TaskOptions& options) {
  const int answer = options.answer > 0 ? options.answer : kObservedAnswer;
  Task out = of(name, losing(answer), model, options);
  out.against = Against::full;
  out.refusal = why_no_loss;
  for (auto& sample : out.samples) {
    sample.max_tokens = answer;
    if (answer != kObservedAnswer) sample.id += fmt::format("-answer-{}", answer);
    if (answer != kObservedAnswer) sample.labels["kind"] = fmt::format("answer {}", answer);
  }
  return out;
}

void add_attention_task(const char* name, const char* source, const char* metric, Measure (*measure)(),
                        std::vector<TaskInfo>& to) {
  to.push_back(
      {name, source, metric, "the last 64 tokens",
       [name, measure](const Model& model, const TaskOptions& options) { return of(name, measure(), model, options); },
       kFolder, "", kOptions});
}

}  // namespace

void add_attention(std::vector<TaskInfo>& to) {
  add_attention_task("attention/concentration", "attention in the best x %, by head (Ada-KV, figures 3, 9)",
                     "attention kept", concentrating, to);
  constexpr const char* kLoss = "attention/loss";
  to.push_back({kLoss, "eviction's loss against its bound (Ada-KV, figure 4)", "attention kept", "the last 64 tokens",
                [](const Model& model, const TaskOptions& options) { return make_loss(kLoss, model, options); },
                kFolder, "", kOptions});
  add_attention_task("attention/kept", "kept positions (EMS, figures 2, 8, 9; AhaKV, 2, 5, 6)",
                     "kept in the second half", keeping, to);
  add_attention_task("attention/redundancy", "similar entries, sparse scores, by head (EMS, figure 4)",
                     "redundant entries", repeating, to);
  add_attention_task("attention/scores", "scores by position (AhaKV, figure 2)", "score in the second half", scoring,
                     to);
  add_attention_task("attention/blocks", "blocks' attention, stable layers (SamKV, figures 7, 8)",
                     "layers that single one out", representing, to);
}

}  // namespace winnow::eval
