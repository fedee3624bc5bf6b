// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <llama.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

constexpr float kGreedyBelow = 1e-5F;  // as in vLLM: a smaller temperature would overflow logits

bool is_less_likely(const llama_token_data& a, const llama_token_data& b) {
  return a.logit != b.logit ? a.logit < b.logit : a.id > b.id;
}

const llama_token_data& largest_of(const Sampler::Candidates& candidates) {
  return *std::max_element(candidates.begin(), candidates.end(), is_less_likely);
}

/// The largest logit becomes 0, so that nothing overflows.
void divide_by(Sampler::Candidates& candidates, float temperature) {
  const double zero = largest_of(candidates).logit;
  for (auto& candidate : candidates) {
    const double logit = (candidate.logit - zero) / temperature;
    candidate.logit = static_cast<float>(std::max<double>(logit, std::numeric_limits<float>::lowest()));
  }
}

}  // namespace

void Sampler::Free::operator()(llama_sampler* chain) const { llama_sampler_free(chain); }

Sampler::Sampler(const SamplingOptions& options, std::optional<Grammar> grammar, std::span<const Token> prompt,
                 int sequence, std::optional<Thinking> thinking)
    : penalties_(options, prompt),
      temperature_(options.temperature),
      top_k_(as_size(options.top_k)),
      least_difference_(std::log(double{options.min_p}) - 1),
      grammar_(std::move(grammar)),
      thinking_(std::move(thinking)) {
  if (temperature_ < kGreedyBelow) return;
  chain_.reset(llama_sampler_chain_init(llama_sampler_chain_default_params()));
  const auto add = [this](llama_sampler* part) { llama_sampler_chain_add(chain_.get(), part); };
  add(llama_sampler_init_min_p(options.min_p, 1));
  add(llama_sampler_init_top_k(options.top_k));
  add(llama_sampler_init_top_p(options.top_p, 1));
  const std::uint32_t seed = options.seed + static_cast<std::uint32_t>(sequence);
  add(llama_sampler_init_dist(seed == LLAMA_DEFAULT_SEED ? 0 : seed));  // libllama replaces this seed by a random one
}

Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;
Sampler::~Sampler() = default;

void Sampler::fill(Candidates& candidates, std::span<const float> logits, std::span<const Token> banned) const {
  constexpr float kNever = -std::numeric_limits<float>::infinity();
  candidates.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) candidates[i] = {static_cast<llama_token>(i), logits[i], 0.0F};
  penalties_.apply(candidates);
  for (const Token token : banned) candidates[token].logit = kNever;
  if (!banned.empty()) std::erase_if(candidates, [](const auto& candidate) { return candidate.logit == kNever; });
}

std::optional<Token> Sampler::sample(std::span<const float> logits, std::span<const Token> banned,
                                     Candidates& candidates) {
  auto token = forced();
  if (!token) {
    fill(candidates, logits, banned);
    if (grammar_ && !grammar_->is_waiting()) keep_allowed(candidates);
    if (candidates.empty()) return std::nullopt;
    token = choose(candidates);
  }
  accept(*token);
  return token;
}

std::optional<Token> Sampler::forced() {
  const auto token = thinking_ ? thinking_->forced() : std::nullopt;
  if (!token || !grammar_ || grammar_->is_waiting()) return token;
  grammar_->begin_token();
  return grammar_->allows(*token) ? token : std::nullopt;
}

/// A lazy grammar that has not begun sees only the end of the thinking, where it may begin.
void Sampler::accept(Token token) {
  penalties_.accept(token);
  const bool thought = thinking_ && thinking_->goes_on();
  if (thinking_) thinking_->accept(token);
  if (!grammar_) return;
  if (!thought || !grammar_->is_waiting()) return grammar_->accept(token);
  if (thinking_->goes_on()) return;
  for (const Token last : thinking_->end()) grammar_->accept(last);
}

/// Checks candidates by descending logit, because checking a token may be slow. If the grammar is too ambiguous to
/// check all of them in time, the least probable ones are dropped.
void Sampler::keep_allowed(Candidates& candidates) {
  grammar_->begin_token();
  std::erase_if(candidates, [this](const auto& candidate) { return !grammar_->may_begin(candidate.id); });
  std::make_heap(candidates.begin(), candidates.end(), is_less_likely);
  Candidates allowed;
  for (auto end = candidates.end(); end != candidates.begin(); --end) {
    const auto& next = candidates.front();
    if (!allowed.empty() && (grammar_->is_impatient() || !may_choose_more(allowed, next))) break;
    if (grammar_->allows(next.id)) allowed.push_back(next);
    std::pop_heap(candidates.begin(), end, is_less_likely);
  }
  candidates.assign(allowed.begin(), allowed.end());
}

/// libllama's min-p computes in float, so the limit here is a little wider.
bool Sampler::may_choose_more(const Candidates& allowed, const llama_token_data& next) const {
  if (chain_ == nullptr || allowed.size() == top_k_) return false;
  return (double{next.logit} - allowed.front().logit) / temperature_ >= least_difference_;
}

Token Sampler::choose(Candidates& candidates) {
  if (chain_ == nullptr) return largest_of(candidates).id;
  divide_by(candidates, temperature_);
  llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(chain_.get(), &array);
  return array.data[array.selected].id;
}

GeneratedToken log_probabilities(std::span<const float> logits, Token chosen, int count) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  const double sum =
      std::accumulate(logits.begin(), logits.end(), 0.0, [&](double s, float x) { return s + std::exp(x - largest); });
  const double log_sum = largest + std::log(sum);
  const auto of = [&](Token id) { return TokenLogprob{id, logits[id] - log_sum}; };
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto end = order.begin() + std::min<std::ptrdiff_t>(count, static_cast<std::ptrdiff_t>(order.size()));
  std::partial_sort(order.begin(), end, order.end(), [&](Token a, Token b) {
    const float x = logits[a];
    const float y = logits[b];
    return x != y ? x > y : a < b;
  });
  GeneratedToken out{of(chosen), {}};
  std::transform(order.begin(), end, std::back_inserter(out.top), of);
  return out;
}

}  // namespace winnow::engine
