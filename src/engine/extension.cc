// SPDX-License-Identifier: Apache-2.0
#include "engine/extension.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/as_size.h"
#include "engine/precision.h"

namespace winnow::engine {

bool passes_by_layers(const policy::Method& method, std::size_t tokens) {
  return tokens > as_size(kExtendRows) && !method.changes_while_decoding() && !method.decoding.attend;
}

namespace {

/// Options that keep all of these tokens in lanes like those of a cache.
CacheOptions keeping_all(const CacheOptions& options, int tokens) {
  CacheOptions out = options;
  if (out.spec.method().needs_budget()) out.budget = Budget::parse(std::to_string(tokens));
  return out;
}

ReadingPlan plan_of(const Session::Impl& session, const CacheOptions& options, int tokens, const PastSize& past) {
  const auto keep = keeping_all(options, tokens);
  return {session, {.text = tokens, .past = past}, std::span(&keep, 1)};
}

}  // namespace

Extension::Extension(Session::Impl& session, Sequence& sequence, std::span<const Token> tokens)
    : session_(session), sequence_(sequence), tokens_(tokens) {
  if (!passes_by_layers(sequence.method(), tokens.size())) return;
  past_.emplace(sequence, sequence.seen);
  const auto& options = sequence.options();
  const auto type = scratch_type(session.options.precision, std::span(&options, 1));
  reading_.emplace(session, plan_of(session, options, static_cast<int>(tokens.size()), past_->size(type)),
                   ReadingInput{.text = tokens, .past = &*past_});
}

bool Extension::advance() {
  if (reading_) return advance_reading();
  logits_.resize(as_size(session_.hparams.n_vocab));
  appended_ += session_.step(sequence_, tokens_.subspan(appended_), logits_);
  return appended_ < tokens_.size();
}

bool Extension::advance_reading() {
  if (reading_->advance()) return true;
  logits_ = reading_->logits(0);
  Cache kept = std::move(reading_->take_caches(0).front());
  reading_.reset();  // frees its work space first
  sequence_.append(std::move(kept.impl()));
  appended_ = tokens_.size();
  return false;
}

double Extension::tokens_left() const {
  const double passed = reading_ ? reading_->done() : 0;
  return static_cast<double>(tokens_.size() - appended_) - passed * static_cast<double>(tokens_.size());
}

/// The tokens are stored twice while they enter the lanes.
std::size_t extension_bytes(const Session::Impl& session, const CacheOptions& options, int tokens,
                            const PastSize& past) {
  if (!passes_by_layers(options.spec.method(), as_size(tokens))) return 0;
  return plan_of(session, options, tokens, past).bytes().all();
}

}  // namespace winnow::engine
