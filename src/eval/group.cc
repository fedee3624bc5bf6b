// SPDX-License-Identifier: Apache-2.0
#include "eval/group.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/hash.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "winnow/error.h"
#include "winnow/policy/method.h"

namespace winnow::eval {

namespace {

/// Cuts the middle of a prompt to `room` tokens, as LongBench does. The question stays whole. Returns how many tokens
/// were cut.
int cut_middle(Prompt& prompt, std::size_t room) {
  const std::size_t total = prompt.text.size() + prompt.question.size();
  if (total <= room) return 0;
  const std::size_t surplus = std::min(total - room, prompt.text.size());
  const auto begin =
      prompt.text.begin() + static_cast<std::ptrdiff_t>(std::min(room / 2, prompt.text.size() - surplus));
  prompt.text.erase(begin, begin + static_cast<std::ptrdiff_t>(surplus));
  return static_cast<int>(surplus);
}

std::string hash_text(const Prompt& prompt) {
  Hasher hasher;
  hasher.add(std::as_bytes(std::span(prompt.text)));
  hasher.add(std::as_bytes(std::span(prompt.question)));
  return fmt::format("{:016x}", hasher.value());
}

/// Names the group by a hash of its records' keys, so that a group of other caches has another name.
void name_group(std::vector<Record>& records) {
  Hasher hasher;
  for (const auto& r : records) {
    for (const auto* text : {&r.key.task, &r.key.id, &r.key.spec, &r.key.budget, &r.key.kv_type, &r.key.protocol,
                             &r.key.prompt_hash, &r.key.rope})
      hasher.add(std::as_bytes(std::span(text->c_str(), text->size() + 1)));
    hasher.add(std::as_bytes(std::span(&r.key.max_prompt, 1)));
  }
  for (auto& r : records) {
    r.group = fmt::format("{:016x}", hasher.value());
    r.group_size = static_cast<int>(records.size());
  }
}

}  // namespace

const char* name_of(Protocol protocol) { return protocol == Protocol::aware ? "question-aware" : "question-agnostic"; }

Group::Group(const Model& model, const Sample& sample, Protocol protocol, std::vector<CacheOptions> caches,
             PromptLimits limits)
    : limits_(std::move(limits)), caches_(std::move(caches)) {
  tokenized_.sample = &sample;
  tokenized_.protocol = protocol;
  tokenized_.prompt = model.tokenize(sample.prompt);
  if (limits_.context == 0) limits_.context = model.info().context;
  if (limits_.max_prompt > 0) cut_tokens_ = cut_middle(tokenized_.prompt, as_size(limits_.max_prompt));
  hash_ = hash_text(tokenized_.prompt);
}

Key Group::key(const CacheOptions& cache) const {
  const Sample& sample = *tokenized_.sample;
  const std::string budget = cache.budget ? cache.budget->print() : "";
  return {
      sample.task, sample.id,          cache.spec.print(), budget, cache.kv_type.print(), name_of(tokenized_.protocol),
      hash_,       limits_.max_prompt, limits_.rope};
}

std::vector<Key> Group::keys() const {
  std::vector<Key> out;
  for (const auto& cache : caches_) out.push_back(key(cache));
  return out;
}

int Group::tokens() const {
  return static_cast<int>(tokenized_.prompt.text.size() + tokenized_.prompt.question.size());
}

void Group::leave_out(const std::set<Key>& known) {
  std::erase_if(caches_, [&](const CacheOptions& cache) { return known.contains(key(cache)); });
}

/// The tokens that are read before the cache is compressed.
int Group::tokens_compressed() const {
  const Prompt& prompt = tokenized_.prompt;
  const bool asked_later = tokenized_.protocol == Protocol::agnostic && !prompt.text.empty();
  return asked_later ? static_cast<int>(prompt.text.size()) : tokens();
}

/// The budget for the prompt, in entries per KV head.
int Group::entries_kept(const Model& model, const CacheOptions& cache) const {
  return engine::budget_entries(cache, model.impl().weights->hparams(), tokens_compressed());
}

bool Group::keeps_all(const Model& model, const CacheOptions& cache) const {
  return cache.budget && entries_kept(model, cache) >= tokens_compressed();
}

/// Why a cache cannot be measured; empty when it can. A prompt that fits into the budget says nothing about the method:
/// its score would look as good as the full cache's. And a share of a short prompt may be less than what the method
/// always keeps.
std::string Group::why_not(const Model& model, const CacheOptions& cache) const {
  if (!cache.budget) return {};
  cache.check();
  const int tokens = tokens_compressed();
  const int entries = entries_kept(model, cache);
  if (keeps_all(model, cache)) {
    const bool counts_entries = cache.budget->unit() == Budget::Unit::entries;
    return fmt::format("the prompt has {} tokens, the budget {}{}", tokens, cache.budget->print(),
                       counts_entries ? "" : fmt::format(" holds {}", entries));
  }
  if (cache.budget->unit() != Budget::Unit::percent) return {};
  const int least = engine::least_budget(cache.spec.method(), model.impl().weights->hparams(), tokens);
  if (entries >= least) return {};
  return fmt::format("{} of {} tokens are {}, {} needs {}", cache.budget->print(), tokens, entries, cache.spec.print(),
                     least);
}

void Group::leave_out_what_does_not_fit(const Model& model) {
  std::erase_if(caches_, [&](const CacheOptions& cache) {
    const auto why = why_not(model, cache);
    if (!why.empty()) skipped_.emplace_back(cache, why);
    return !why.empty();
  });
}

/// Refuses longer prompts, unless the user allowed them.
void Group::check_length() const {
  if (limits_.max_prompt > 0 && tokens() > limits_.max_prompt)
    throw InputError(
        fmt::format("the question alone has {} tokens, --max-prompt allows {}", tokens(), limits_.max_prompt));
  if (beyond_context() == 0 || limits_.beyond == PromptLimits::Beyond::allowed) return;
  const int answer = tokenized_.sample->max_tokens;
  throw InputError(
      fmt::format("the prompt has {} tokens{}, the model's context {}: --max-prompt N cuts the middle out of longer "
                  "prompts, --beyond-context reads them as they are",
                  tokens(), answer > 0 ? fmt::format(" and its answer up to {}", answer) : "", limits_.context));
}

/// The context's length where prompt and answer exceed it, or 0.
int Group::beyond_context() const {
  return tokens() > limits_.context - tokenized_.sample->max_tokens ? limits_.context : 0;
}

std::vector<Record> Group::measure(Session& session, const Task& task) {
  check_length();
  leave_out_what_does_not_fit(session.model());
  std::vector<Record> out;
  if (!caches_.empty()) out = measure_caches(session, task);
  for (const auto& [cache, why] : skipped_) {
    auto& record = out.emplace_back();
    record.skipped = why;
    fill_in(cache, {}, 0, record);
  }
  name_group(out);
  return out;
}

std::vector<Record> Group::measure_caches(Session& session, const Task& task) {
  auto caches = caches_;
  const std::ptrdiff_t before = task.against == Against::full ? 1 : 0;
  if (before > 0) caches.insert(caches.begin(), CacheOptions());
  session.reset_peak();
  const auto begin = Clock::now();
  auto text = read(session, caches);
  tokenized_.read_ms = ms_since(begin);
  auto out = task.measure(session, tokenized_, text.caches, std::move(text.logits));
  for (std::size_t i = 0; i < out.size(); ++i) fill_in(caches[i], text.stats[i], tokenized_.read_ms, out[i]);
  out.erase(out.begin(), out.begin() + before);
  return out;
}

AnswerStart Group::read(Session& session, std::span<const CacheOptions> caches) const {
  return Questions(session, tokenized_.prompt.text, {tokenized_.prompt.question}, tokenized_.protocol, caches).ask(0);
}

void Group::fill_in(const CacheOptions& cache, const CacheStats& stats, double prefill_ms, Record& record) const {
  record.key = key(cache);
  record.labels = tokenized_.sample->labels;
  record.prompt_tokens = tokens();
  record.cut_tokens = cut_tokens_;
  record.beyond_context = beyond_context();
  record.entries = stats.entries_per_head_mean;
  record.bytes_held = stats.bytes_held;
  record.timings.prefill_ms = prefill_ms;
}

}  // namespace winnow::eval
