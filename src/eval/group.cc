// SPDX-License-Identifier: Apache-2.0
#include "eval/group.h"

#include <spdlog/fmt/fmt.h>

#include "base/clock.h"
#include "base/hash.h"
#include "engine/layers.h"
#include "engine/model_impl.h"
#include "eval/reading.h"
#include "winnow/error.h"
#include "winnow/policy/method.h"
#include "winnow/recommended.h"

namespace winnow::eval {

namespace {

/// Names the group by a hash of its records' keys, so that a group with other caches gets another name.
void name_group(std::vector<Record>& records) {
  Hasher hasher;
  for (const auto& r : records) {
    for (const auto* text : {&r.key.task, &r.key.id, &r.key.spec, &r.key.budget, &r.key.kv_type, &r.key.protocol,
                             &r.key.prompt_hash, &r.key.rope})
      hasher.add(std::as_bytes(std::span(text->c_str(), text->size() + 1)));
    hasher.add(std::as_bytes(std::span(&r.key.max_prompt, 1)));
    hasher.add(std::as_bytes(std::span(r.key.calibration)));
  }
  for (auto& r : records) {
    r.group = fmt::format("{:016x}", hasher.value());
    r.group_size = static_cast<int>(records.size());
  }
}

}  // namespace

const char* name_of(Protocol protocol) { return protocol == Protocol::aware ? "question-aware" : "question-agnostic"; }

Key key_without_prompt(const Sample& sample, Protocol protocol, const Method& method, const PromptLimits& limits) {
  return {sample.task,
          sample.id,
          method.spec(),
          method.budget() ? method.budget()->print() : "",
          method.kv_type().print(),
          name_of(protocol),
          "",
          limits.max_prompt,
          limits.rope,
          method.cache().spec.method().calibration ? limits.calibration : ""};
}

Group::Group(const Model& model, const Sample& sample, Protocol protocol, std::vector<Method> methods,
             PromptLimits limits)
    : tokenized_(tokenized(model, sample, protocol, limits.max_prompt)),
      limits_(std::move(limits)),
      methods_(std::move(methods)),
      hash_(hash_of(tokenized_)) {
  if (limits_.context == 0) limits_.context = model.info().context;
}

Key Group::key(const Method& method) const {
  Key out = key_without_prompt(*tokenized_.sample, tokenized_.protocol, method, limits_);
  out.prompt_hash = hash_;
  return out;
}

std::vector<Key> Group::keys() const {
  std::vector<Key> out;
  for (const auto& method : methods_) out.push_back(key(method));
  return out;
}

void Group::leave_out(const std::set<Key>& known) {
  std::erase_if(methods_, [&](const Method& method) { return known.contains(key(method)); });
}

/// Number of tokens that are read before the cache is compressed.
int Group::tokens_compressed(const Method& method) const {
  const Prompt& prompt = tokenized_.prompt;
  const bool asked_later = method.ask() || (tokenized_.protocol == Protocol::agnostic && !prompt.text.empty());
  return asked_later ? static_cast<int>(prompt.text.size()) : tokenized_.tokens();
}

/// The prompt's budget, in entries per KV head.
int Group::entries_kept(const Model& model, const Method& method) const {
  return engine::budget_entries(method.cache(), engine::hparams_of(model), tokens_compressed(method));
}

bool Group::keeps_all(const Model& model, const Method& method) const {
  return method.budget() && entries_kept(model, method) >= tokens_compressed(method);
}

/// The reason why a method cannot be measured; empty if it can. If the prompt fits into the budget, the score says
/// nothing about the method: it would be the full cache's. A share of a short prompt may be less than what the method
/// always keeps.
std::string Group::why_not(const Model& model, const Method& method) const {
  if (!method.budget()) return {};
  const Budget& budget = *method.budget();
  const int tokens = tokens_compressed(method);
  const int entries = entries_kept(model, method);
  if (keeps_all(model, method)) {
    return fmt::format("the prompt has {} tokens, which fit into the budget of {}{}", tokens, budget.print(),
                       budget.unit() == Budget::Unit::entries ? "" : fmt::format(" ({} entries)", entries));
  }
  if (budget.unit() != Budget::Unit::percent) return {};
  const int least = engine::least_budget(method.cache().spec.method(), engine::hparams_of(model), tokens);
  if (entries >= least) return {};
  return fmt::format("{} of {} tokens are {} entries, but {} needs {}", budget.print(), tokens, entries,
                     method_label(method.spec()), least);
}

void Group::leave_out_what_does_not_fit(const Model& model) {
  std::erase_if(methods_, [&](const Method& method) {
    const auto why = why_not(model, method);
    if (!why.empty()) skipped_.emplace_back(method, why);
    return !why.empty();
  });
}

/// Refuses longer prompts unless the user allowed them.
void Group::check_length() const {
  const int tokens = tokenized_.tokens();
  if (limits_.max_prompt > 0 && tokens > limits_.max_prompt) {
    const char* const least =
        tokenized_.documents.empty() ? "the question alone has" : "with a token of each document the prompt has";
    throw InputError(
        fmt::format("{} {} tokens, more than --max-prompt allows ({})", least, tokens, limits_.max_prompt));
  }
  if (beyond_context() == 0 || limits_.beyond == PromptLimits::Beyond::allowed) return;
  const int answer = tokenized_.sample->max_tokens;
  throw InputError(
      fmt::format("the prompt has {} tokens{}, more than the model's context of {}: cut the middle out of long prompts "
                  "with --max-prompt N, or read them whole with --beyond-context",
                  tokens, answer > 0 ? fmt::format(" and its answer up to {}", answer) : "", limits_.context));
}

/// The context's length if prompt and answer exceed it, else 0.
int Group::beyond_context() const {
  return tokenized_.tokens() > limits_.context - tokenized_.sample->max_tokens ? limits_.context : 0;
}

std::vector<Record> Group::measure(Session& session, const Task& task) {
  check_length();
  std::vector<Record> out;
  if (const auto* const whole = std::get_if<WholeMeasure>(&task.measure)) {
    out = measure_whole(session, *whole);
  } else {
    leave_out_what_does_not_fit(session.model());
    if (!methods_.empty()) out = measure_together(session, std::get<Measure>(task.measure), task.against);
  }
  for (const auto& [method, why] : skipped_) {
    auto& record = out.emplace_back();
    record.skipped = why;
    describe(method, record);
  }
  name_group(out);
  return out;
}

std::vector<Record> Group::measure_whole(Session& session, const WholeMeasure& measure) {
  std::vector<Record> out;
  for (const auto& method : methods_) {
    out.push_back(measure(session, tokenized_, method));
    describe(method, out.back());
  }
  return out;
}

std::vector<Record> Group::measure_together(Session& session, const Measure& measure, Against against) {
  auto methods = methods_;
  const std::ptrdiff_t before = against == Against::full ? 1 : 0;
  if (before > 0) methods.insert(methods.begin(), CacheOptions());
  session.reset_peak();
  const auto begin = Clock::now();
  auto readings = read(session, tokenized_, methods);
  tokenized_.read_ms = ms_since(begin);
  tokenized_.first_tokens.clear();
  std::vector<Cache> caches;
  std::vector<std::vector<float>> logits;
  for (auto& reading : readings) {
    tokenized_.first_tokens.push_back(reading.first_token);
    caches.push_back(std::move(reading.cache));
    logits.push_back(std::move(reading.logits));
  }
  auto out = measure(session, tokenized_, caches, std::move(logits));
  for (std::size_t i = 0; i < out.size(); ++i) {
    describe(methods[i], out[i]);
    out[i].entries = readings[i].stats.entries_per_head_mean;
    out[i].bytes_held = readings[i].stats.bytes_held;
    out[i].timings.prefill_ms = tokenized_.read_ms;
    out[i].values.merge(readings[i].values);
  }
  out.erase(out.begin(), out.begin() + before);
  return out;
}

/// Sets the fields of a record that depend only on the sample and the method.
void Group::describe(const Method& method, Record& record) const {
  record.key = key(method);
  record.labels = tokenized_.sample->labels;
  record.prompt_tokens = tokenized_.tokens();
  record.cut_tokens = tokenized_.cut_tokens;
  record.beyond_context = beyond_context();
}

}  // namespace winnow::eval
