// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar.h"

#include <llama.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <ctime>
#include <vector>

#include "engine/grammar_check.h"
#include "winnow/error.h"

namespace winnow::engine {

namespace {

constexpr const char* kRoot = "root";

constexpr double kPatience = 0.1;  // seconds of the processor

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/// libllama follows all ways to read what the answer says so far, and some grammars double them with each character.
/// One token takes some microseconds otherwise.
template <class Work>
void within_patience(const Work& work) {
  const double began = thread_seconds();
  work();
  if (const double took = thread_seconds() - began; took > kPatience)
    throw UsageError(
        fmt::format("the grammar has too many ways to read this answer: looking at one token took {:.0f} "
                    "ms; let its alternatives begin differently",
                    1000 * took));
}

/// The least byte that may follow this one in UTF-8 where that is not any: libllama lets characters through that are
/// written with more bytes than they need.
unsigned char least_after(unsigned char byte) { return byte == 0xE0 ? 0xA0 : byte == 0xF0 ? 0x90 : 0; }

bool is_refused(const llama_token_data& candidate) { return std::isinf(candidate.logit) && candidate.logit < 0; }

}  // namespace

void Grammar::Free::operator()(llama_sampler* grammar) const { llama_sampler_free(grammar); }

Grammar::Grammar(const model::Vocab& vocab, const std::string& text, EndOfSequence end) : vocab_(&vocab), end_(end) {
  check_grammar(text);
  grammar_.reset(llama_sampler_init_grammar(vocab.handle(), text.c_str(), kRoot));
  if (grammar_ == nullptr)
    throw UsageError(
        fmt::format("the grammar of {} bytes is not valid GBNF with a rule '{}': libllama has said on "
                    "stderr what is wrong with it (-v shows more)",
                    text.size(), kRoot));
}

Grammar::Grammar(Grammar&&) noexcept = default;
Grammar& Grammar::operator=(Grammar&&) noexcept = default;
Grammar::~Grammar() = default;

bool Grammar::may_come(Token token) const {
  if (vocab_->ends(token)) return end_ == EndOfSequence::stops;
  if (least_next_ > 0 && static_cast<unsigned char>(vocab_->piece(token)[0]) < least_next_) return false;
  return vocab_->has_text(token);
}

bool Grammar::allows(Token token) {
  if (!may_come(token)) return false;
  llama_token_data one{token, 0, 0};
  llama_token_data_array array{&one, 1, -1, false};
  within_patience([&] { llama_sampler_apply(grammar_.get(), &array); });
  return !is_refused(one);
}

void Grammar::keep_allowed(std::vector<llama_token_data>& candidates) {
  std::erase_if(candidates, [this](const auto& candidate) { return is_refused(candidate) || !may_come(candidate.id); });
  llama_token_data_array array{candidates.data(), candidates.size(), -1, false};
  llama_sampler_apply(grammar_.get(), &array);
  std::erase_if(candidates, is_refused);
}

void Grammar::accept(Token token) {
  within_patience([&] { llama_sampler_accept(grammar_.get(), token); });
  const std::string piece = vocab_->piece(token);
  least_next_ = piece.empty() ? 0 : least_after(static_cast<unsigned char>(piece.back()));
}

}  // namespace winnow::engine
