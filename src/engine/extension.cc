// SPDX-License-Identifier: Apache-2.0
#include "engine/extension.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/check_memory.h"

namespace winnow::engine {

bool passes_by_layers(const policy::Method& method, std::size_t tokens) {
  return tokens > as_size(kExtendRows) && !method.changes_while_decoding() && !method.decoding.attend;
}

namespace {

/// How all of so many tokens are kept in lanes like those of a cache.
CacheOptions keeping_all(const CacheOptions& options, int tokens) {
  CacheOptions out = options;
  if (out.spec.method().needs_budget()) out.budget = Budget::parse(std::to_string(tokens));
  return out;
}

}  // namespace

Extension::Extension(Session::Impl& session, Sequence& sequence, std::span<const Token> tokens)
    : session_(session), sequence_(sequence), tokens_(tokens) {
  if (!passes_by_layers(sequence.method(), tokens.size())) return;
  const auto keep = keeping_all(sequence.options(), static_cast<int>(tokens.size()));
  past_.emplace(sequence, sequence.seen);
  const auto past = past_->size(scratch_type(session.options.precision, std::span(&keep, 1)));
  const auto need = extension_bytes(session, sequence.options(), static_cast<int>(tokens.size()), past);
  check_memory(need, fmt::format("reading {} tokens", tokens.size()));
  auto context = session.prefill_context(session.begin_pass(tokens.size(), need));
  context.past = &*past_;
  prefill_.emplace(std::move(context), tokens, keep);
}

bool Extension::advance() {
  if (prefill_) return advance_prefill();
  logits_.resize(as_size(session_.hparams.n_vocab));
  appended_ += session_.step(sequence_, tokens_.subspan(appended_), logits_);
  return appended_ < tokens_.size();
}

bool Extension::advance_prefill() {
  const Session::Impl::Stops stops(session_);
  if (prefill_->advance()) return true;
  logits_ = prefill_->logits(0);
  Cache kept = std::move(prefill_->take_caches(0).front());
  prefill_.reset();  // gives back its work space first
  sequence_.append(std::move(kept.impl()));
  appended_ = tokens_.size();
  return false;
}

double Extension::tokens_left() const {
  const double passed = prefill_ ? prefill_->done() : 0;
  return static_cast<double>(tokens_.size() - appended_) - passed * static_cast<double>(tokens_.size());
}

/// While the tokens enter the lanes they are there twice.
std::size_t extension_bytes(const Session::Impl& session, const CacheOptions& options, int tokens,
                            const PastSize& past) {
  if (!passes_by_layers(options.spec.method(), as_size(tokens))) return 0;
  return session.later_bytes(tokens, keeping_all(options, tokens), past);
}

}  // namespace winnow::engine
