// SPDX-License-Identifier: Apache-2.0
#include "documents/asking.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "cache/lane_storage.h"
#include "engine/cache_bytes.h"
#include "engine/layers.h"
#include "engine/precision.h"
#include "engine/reading_plan.h"
#include "engine/saved.h"
#include "winnow/error.h"

namespace winnow::documents {

namespace {

void check_model(const Session::Impl& session, const Joint& joint) {
  const auto model = engine::identity_of(*session.model);
  for (int i = 0; i < joint.count(); ++i) {
    const auto& head = joint.document(i).head();
    if (!(head.saved.model == model))
      throw InputError(
          fmt::format("document {} of {} was read with another model or other RoPE options", i + 1, joint.count()));
  }
}

/// Compressed documents lack tokens, so only some methods can use them.
void check_whole(std::span<const std::shared_ptr<const Document>> documents, const AskMethod& method) {
  for (std::size_t i = 0; i < documents.size(); ++i) {
    if (!documents[i]->is_compressed() || method.takes_compressed) continue;
    throw UsageError(
        fmt::format("{} needs all tokens of a document, but document {} of {} was compressed by {} when it was added: "
                    "use reuse or recompute",
                    method.name, i + 1, documents.size(), documents[i]->head().saved.options.spec.print()));
  }
}

std::vector<std::vector<std::vector<int>>> all_blocks(const Joint& joint) {
  std::vector<std::vector<int>> documents;
  for (int i = 0; i < joint.count(); ++i) {
    auto& blocks = documents.emplace_back(as_size(joint.layout(i).blocks()));
    std::iota(blocks.begin(), blocks.end(), 0);
  }
  return std::vector(as_size(joint.hparams().n_layer), documents);
}

}  // namespace

CacheOptions cache_of(const AskOptions& options) {
  options.check();
  return {Spec::parse(options.method.method().cache_spec), options.budget, options.kv_type};
}

Asking::Asking(std::vector<std::shared_ptr<const Document>> documents, std::vector<Token> question,
               const AskOptions& options)
    : documents_(std::move(documents)),
      question_(std::move(question)),
      options_(options),
      cache_(cache_of(options)),
      asked_{Cache(nullptr), {}, {}, 0, 1, 0, 0, {}, {}} {
  if (documents_.empty()) throw InputError("there are no documents to ask about");
  if (question_.empty()) throw InputError("the question is empty: there is nothing to ask");
  check_whole(documents_, options_.method.method());
}

int Asking::tokens() const {
  int out = static_cast<int>(question_.size());
  for (const auto& document : documents_) out += document->tokens();
  return out;
}

std::size_t Asking::scratch_bytes(const Session::Impl& session) const {
  const auto type = engine::scratch_type(session.options.precision, std::span(&cache_, 1));
  return cache::LayerScratch::bytes(type, engine::kv_heads_of(session.hparams), tokens());
}

/// Peak bytes: a prefill of all tokens, the scratch of the documents' rows, a chunk's hidden states, and the block for
/// the question's entries.
std::size_t Asking::bytes(const Session::Impl& session) const {
  return engine::ReadingPlan(session, tokens(), cache_).bytes().all() + scratch_bytes(session) +
         network::States::bytes(session.hparams, as_size(session.options.chunk)) + cache_bytes(session) -
         engine::cache_bytes(cache_, session.hparams, tokens());
}

/// Includes a block for the question's entries, which are appended to the documents' lanes.
std::size_t Asking::cache_bytes(const Session::Impl& session) const {
  return engine::cache_bytes(cache_, session.hparams, tokens()) +
         as_size(cache::LaneStorage::kTailBlock) * engine::entry_bytes(cache_, session.hparams);
}

void Asking::begin(Session::Impl& session) {
  const auto& method = options_.method.method();
  session.check(question_);
  joint_.emplace(documents_, session.hparams);
  check_model(session, *joint_);
  check_memory(scratch_bytes(session) + network::States::bytes(session.hparams, question_.size()),
               fmt::format("asking about {} documents of {} tokens", joint_->count(), joint_->tokens()));
  asked_.kept_blocks = all_blocks(*joint_);
  asked_.document_tokens = joint_->tokens();
  context_.emplace(AskContext{session, *joint_, question_, cache_, options_.method.options(), asked_});
  steps_.emplace(method.run(*context_));
}

bool Asking::advance() {
  const Session::Impl::Stops stopping(context_->session);
  ++steps_done_;
  return steps_->advance();
}

double Asking::done() const { return context_ ? std::min(1.0, steps_done_ / (2.0 * context_->hparams().n_layer)) : 0; }

}  // namespace winnow::documents
