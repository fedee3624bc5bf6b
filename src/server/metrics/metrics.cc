// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>
#include <mutex>

#include "server/openai/answer.h"

namespace winnow::server {

namespace {

using prometheus::Counter;
using prometheus::Family;
using prometheus::Gauge;
using prometheus::Histogram;

/// Clients choose specs; those beyond this number are counted together.
constexpr std::size_t kMostSpecs = 100;

/// Steps of 1, 2, 5, 10 … times `least`, up to `most`.
Histogram::BucketBoundaries steps(double least, double most) {
  Histogram::BucketBoundaries out;
  for (double decade = least; decade <= most; decade *= 10) {
    for (const double factor : {1, 2, 5}) {
      if (decade * factor <= most) out.push_back(decade * factor);
    }
  }
  return out;
}

Histogram::BucketBoundaries seconds() { return steps(1e-3, 5000); }
Histogram::BucketBoundaries tokens() { return steps(1, 1e6); }

}  // namespace

const char* reason_of_end(const PromptEnd& end, const Generation& answer) {
  if (end.error) return "error";
  return answer.finish == FinishReason::interrupted ? "abort" : finish_name(answer.finish);
}

struct Metrics::Impl {
  explicit Impl(const std::string& model) : labels{{"model_name", model}} {}

  Family<Counter>& counters(const char* name, const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Labels(labels).Register(registry);
  }
  Family<Gauge>& gauges(const char* name, const char* help) {
    return prometheus::BuildGauge().Name(name).Help(help).Labels(labels).Register(registry);
  }
  Counter& counter(const char* name, const char* help) { return counters(name, help).Add({}); }
  Gauge& gauge(const char* name, const char* help) { return gauges(name, help).Add({}); }
  Histogram& histogram(const char* name, const char* help, const Histogram::BucketBoundaries& buckets) {
    return prometheus::BuildHistogram().Name(name).Help(help).Labels(labels).Register(registry).Add({}, buckets);
  }
  Gauge& entries_of(const std::string& spec);
  void show_requests(const EngineLoad& load);
  void show_prefixes(const PrefixUse& now);
  void show_texts(const TextUse& now);
  void ended(const PromptEnd& end);

  prometheus::Registry registry;
  prometheus::Labels labels;
  double memory = 1;

  Gauge& running =
      gauge("vllm:num_requests_running", "Running requests: their prompt is being read or they are being answered.");
  Gauge& waiting = gauge("vllm:num_requests_waiting", "Waiting requests.");
  Gauge& paused = gauge("winnow_requests_paused", "Running requests whose answers wait for memory.");
  Gauge& usage =
      gauge("vllm:kv_cache_usage_perc", "Share of the memory for requests that is promised to them, from 0 to 1.");
  Counter& prefix_queries =
      counter("vllm:prefix_cache_queries_total", "Tokens of prompts that were looked up among stored texts.");
  Counter& prefix_hits = counter("vllm:prefix_cache_hits_total", "Tokens of prompts that were found in stored texts.");
  Counter& prefix_dropped = counter("winnow_prefix_dropped_tokens_total",
                                    "Tokens of stored texts whose keys and values were dropped to store others.");
  Counter& preemptions =
      counter("vllm:num_preemptions_total", "Preempted requests; always 0, because winnow preempts none.");
  Counter& prompt_tokens = counter("vllm:prompt_tokens_total", "Tokens of prompts.");
  Counter& cached_tokens = counter("vllm:prompt_tokens_cached_total",
                                   "Tokens of prompts that were stored by earlier requests and not read again.");
  Counter& generated_tokens = counter("vllm:generation_tokens_total", "Generated tokens.");
  Family<Counter>& finished =
      counters("vllm:request_success_total", "Ended answers by reason: stop, length, abort, error.");
  Histogram& first_token =
      histogram("vllm:time_to_first_token_seconds", "Time from a request's arrival to its first token.", seconds());
  Histogram& between_tokens =
      histogram("vllm:inter_token_latency_seconds", "Time from one token of an answer to the next.", seconds());
  Histogram& latency =
      histogram("vllm:e2e_request_latency_seconds", "Time from a request's arrival to its last token.", seconds());
  Histogram& queue_time =
      histogram("vllm:request_queue_time_seconds", "Time that a request waited before it began.", seconds());
  Histogram& read_time =
      histogram("vllm:request_prefill_time_seconds", "Time from a request's beginning to its first token.", seconds());
  Histogram& answer_time =
      histogram("vllm:request_decode_time_seconds", "Time from a request's first token to its last.", seconds());
  Histogram& request_prompt = histogram("vllm:request_prompt_tokens", "Tokens of a request's prompt.", tokens());
  Histogram& request_generation =
      histogram("vllm:request_generation_tokens", "Tokens of a request's answers.", tokens());
  Family<Gauge>& bytes = gauges("winnow_kv_bytes",
                                "Bytes of caches: promised to requests, held by requests, and held by texts stored for "
                                "later requests (prefixes).");
  Family<Gauge>& entries =
      gauges("winnow_kv_entries", "Entries held by requests, over all layers and KV heads, by spec.");
  Family<Gauge>& text_bytes = gauges("winnow_text_bytes",
                                     "Bytes of texts stored for later requests: in memory, or in the folder of "
                                     "--texts.");
  Family<Gauge>& text_blocks =
      gauges("winnow_text_blocks", "Blocks of 64 tokens of such texts; those of the folder include states.");
  Family<Counter>& text_events = counters(
      "winnow_text_blocks_total", "Blocks and states read from --texts, written to it, or found damaged there.");
  Gauge& longest_quantum = gauge("winnow_prefill_longest_quantum_seconds",
                                 "Longest time of one quantum of reading a prompt, during which answers wait.");
  Family<Counter>& refused = counters("winnow_rejected_total", "Refused requests by the error's code or type.");

  std::mutex show_mutex;
  TextUse texts_shown;
  PrefixUse shown;                              ///< values of the counters
  std::map<std::string, Gauge*> entries_shown;  ///< by spec
};

Gauge& Metrics::Impl::entries_of(const std::string& spec) {
  const auto found = entries_shown.find(spec);
  if (found != entries_shown.end()) return *found->second;
  const std::string& name = entries_shown.size() < kMostSpecs ? spec : "other";
  return *entries_shown.emplace(name, &entries.Add({{"spec", name}})).first->second;
}

void Metrics::Impl::show_texts(const TextUse& now) {
  text_bytes.Add({{"tier", "memory"}}).Set(static_cast<double>(now.memory_bytes));
  text_bytes.Add({{"tier", "folder"}}).Set(static_cast<double>(now.stored_bytes));
  text_blocks.Add({{"tier", "memory"}}).Set(static_cast<double>(now.memory_blocks));
  text_blocks.Add({{"tier", "folder"}}).Set(static_cast<double>(now.stored_blocks));
  const auto count = [this](const char* event, std::uint64_t before, std::uint64_t after) {
    text_events.Add({{"event", event}}).Increment(static_cast<double>(after - before));
  };
  count("read", texts_shown.read, now.read);
  count("written", texts_shown.written, now.written);
  count("damaged", texts_shown.damaged, now.damaged);
  texts_shown = now;
}

void Metrics::Impl::show_requests(const EngineLoad& load) {
  double held = 0;
  const auto count = [&load](RequestState::Phase phase) {
    return static_cast<double>(
        std::ranges::count_if(load.states, [phase](const auto& request) { return request.state.phase == phase; }));
  };
  for (const auto& [spec, gauge] : entries_shown) gauge->Set(0);
  for (const auto& request : load.states) {
    held += static_cast<double>(request.state.bytes_held);
    entries_of(request.spec).Increment(static_cast<double>(request.state.entries_held));
  }
  const double waits = count(RequestState::Phase::waiting);
  waiting.Set(waits);
  running.Set(static_cast<double>(load.states.size()) - waits);
  paused.Set(count(RequestState::Phase::paused));
  bytes.Add({{"state", "held"}}).Set(held);
  bytes.Add({{"state", "promised"}}).Set(static_cast<double>(load.promised));
  usage.Set(static_cast<double>(load.promised) / memory);
}

void Metrics::Impl::show_prefixes(const PrefixUse& now) {
  bytes.Add({{"state", "prefixes"}}).Set(static_cast<double>(now.bytes));
  prefix_queries.Increment(static_cast<double>(now.asked - shown.asked));
  prefix_hits.Increment(static_cast<double>(now.found - shown.found));
  prefix_dropped.Increment(static_cast<double>(now.dropped - shown.dropped));
  shown = now;
}

void Metrics::Impl::ended(const PromptEnd& end) {
  cached_tokens.Increment(end.cached_tokens);
  for (const auto& answer : end.answers) finished.Add({{"finished_reason", reason_of_end(end, answer)}}).Increment();
}

Metrics::Metrics(const std::string& model, std::size_t memory) : impl_(std::make_unique<Impl>(model)) {
  impl_->memory = static_cast<double>(memory);
  for (const char* const reason : {"stop", "length", "abort", "error"})
    impl_->finished.Add({{"finished_reason", reason}});
}

Metrics::~Metrics() = default;

void Metrics::read(int tokens) { impl_->prompt_tokens.Increment(tokens); }

void Metrics::first_token(double seconds) { impl_->first_token.Observe(seconds); }

void Metrics::next_token(double seconds) { impl_->between_tokens.Observe(seconds); }

void Metrics::token() { impl_->generated_tokens.Increment(); }

void Metrics::answered(const PromptEnd& end, int prompt_tokens, double seconds) {
  impl_->ended(end);
  std::size_t generated = 0;
  for (const auto& answer : end.answers) generated += answer.tokens.size();
  impl_->latency.Observe(seconds);
  impl_->queue_time.Observe(end.queue_ms / 1000);
  impl_->read_time.Observe(end.read_ms / 1000);
  impl_->answer_time.Observe(end.answer_ms / 1000);
  impl_->request_prompt.Observe(prompt_tokens);
  impl_->request_generation.Observe(static_cast<double>(generated));
}

void Metrics::stopped(const PromptEnd& end) { impl_->ended(end); }

void Metrics::rejected(const std::string& reason) { impl_->refused.Add({{"reason", reason}}).Increment(); }

std::string Metrics::text(const EngineLoad& load) {
  const std::lock_guard lock(impl_->show_mutex);
  impl_->show_requests(load);
  impl_->show_prefixes(load.prefixes);
  impl_->show_texts(load.texts);
  impl_->longest_quantum.Set(load.longest_quantum_ms / 1000);
  return prometheus::TextSerializer().Serialize(impl_->registry.Collect());
}

}  // namespace winnow::server
