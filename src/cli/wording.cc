// SPDX-License-Identifier: Apache-2.0
#include "cli/wording.h"

#include <spdlog/fmt/fmt.h>

#include "base/counted.h"
#include "base/log.h"
#include "winnow/recommended.h"

namespace winnow::cli {

namespace {

std::string described_as(const std::string& spec, const CacheOptions& cache) {
  return fmt::format("{}{}, {}", spec, cache.budget ? " @ " + cache.budget->print() : "", cache.kv_type.print());
}

}  // namespace

const char* name_of(PromptFormat format) { return format == PromptFormat::raw ? "raw" : "chat"; }

double per_second(double count, double ms) { return ms > 0 ? count * 1000 / ms : 0; }

std::string described(const CacheOptions& cache) { return described_as(cache.spec.print(), cache); }

std::string described_in_full(const CacheOptions& cache) {
  const std::string spec = cache.spec.print();
  const std::string label = method_label(spec);
  return described_as(label == spec ? cache.spec.print_full() : label, cache);
}

std::string duration(double seconds) {
  const int minutes = static_cast<int>(seconds / 60);
  if (minutes < 2) return fmt::format("{:.0f} s", seconds);
  return minutes < 120 ? fmt::format("{} min", minutes) : fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

void say_if_cut(const Generation& generation) {
  const auto tokens = generation.tokens.size();
  if (generation.finish == FinishReason::length && tokens > 0)
    log().info("the answer was cut off after {} (-n)", counted(tokens, "token"));
}

const char* where_it_ends(const Conversation& conversation) {
  if (conversation.last() == nullptr) return "before a question";
  return conversation.awaits_answer() ? "after a question" : "after an answer";
}

}  // namespace winnow::cli
