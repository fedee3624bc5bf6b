// SPDX-License-Identifier: Apache-2.0
#include "cli/wording.h"

#include <spdlog/fmt/fmt.h>

namespace winnow::cli {

namespace {

std::string described(const std::string& spec, const CacheOptions& cache) {
  return fmt::format("{}{}, {}", spec, cache.budget ? " @ " + cache.budget->print() : "", cache.kv_type.print());
}

}  // namespace

const char* name_of(PromptFormat format) { return format == PromptFormat::raw ? "raw" : "chat"; }

std::string described(const CacheOptions& cache) { return described(cache.spec.print(), cache); }
std::string described_in_full(const CacheOptions& cache) { return described(cache.spec.print_full(), cache); }

const char* where_it_ends(const Conversation& conversation) {
  if (conversation.last() == nullptr) return "before a question";
  return conversation.awaits_answer() ? "after a question" : "after an answer";
}

}  // namespace winnow::cli
