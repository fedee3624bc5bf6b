// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <chrono>
#include <numeric>
#include <utility>

#include "base/as_size.h"
#include "base/check_memory.h"
#include "cache/growing_lanes.h"
#include "documents/ask_method.h"
#include "documents/ingest.h"
#include "documents/resident.h"
#include "engine/prefill.h"
#include "engine/saved.h"
#include "winnow/error.h"

namespace winnow {

namespace documents {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void check_documents(const Session::Impl& session, const Joint& joint, const AskMethod& method) {
  const auto model = engine::identity_of(session.hparams, session.model->hash());
  for (int i = 0; i < joint.count(); ++i) {
    const auto& head = joint.document(i).head();
    if (!(head.saved.model == model))
      throw InputError(fmt::format("document {} of {} was read with another model, or with other RoPE options", i + 1,
                                   joint.count()));
    if (joint.document(i).is_compressed() && !method.takes_compressed) {
      throw UsageError(
          fmt::format("{} cannot work on document {} of {}: it was compressed by {} when it was added, so that tokens "
                      "are missing; reuse can",
                      method.name, i + 1, joint.count(), head.saved.options.spec.print()));
    }
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

Asked ask_once(Session& session, std::span<const std::shared_ptr<const Document>> documents,
               std::span<const Token> question, const AskOptions& options) {
  auto& s = session.impl();
  const auto& method = *options.method.impl().method;
  const Joint joint(documents, s.hparams);
  check_documents(s, joint, method);
  CacheOptions cache;
  cache.spec = Spec::parse(method.cache_spec);
  cache.budget = options.budget;
  cache.kv_type = options.kv_type;
  const auto rows = as_size(joint.tokens()) + question.size();
  const std::size_t token =
      engine::scratch_bytes(s.hparams, engine::scratch_type(s.options.precision, std::span(&cache, 1)));
  check_memory(rows * token + engine::hidden_bytes(s.hparams, question.size()),
               fmt::format("asking about {} documents of {} tokens", joint.count(), joint.tokens()));
  const Session::Impl::Stops stopping(s);
  Asked asked{Cache(nullptr), {}, all_blocks(joint), joint.tokens(), 1, 0, 0, {}, {}};
  method.run({session, joint, question, cache, options.method.impl().options, asked});
  return asked;
}

/// Reads the tokens of a document anew, as it was read and kept when it was added.
std::shared_ptr<const Document> recomputed(Session& session, const Document& document) {
  const auto& saved = document.head().saved;
  const auto& all = saved.transcript.tokens;
  return resident(
      ingest(session, {"", ControlTokens::as_text, {all.begin(), all.begin() + document.tokens()}}, saved.options));
}

}  // namespace

StageTimer::StageTimer(Asked& asked, std::string name) : asked_(asked), name_(std::move(name)), begin_(now()) {}
StageTimer::~StageTimer() { asked_.stages.push_back({std::move(name_), now() - begin_}); }

void answer(const AskContext& context, Assembly& assembly) {
  auto& asked = context.asked;
  asked.cache = assembly.finish();
  const auto& count = assembly.count();
  const double all = static_cast<double>(context.joint.tokens()) * context.hparams().n_layer;
  asked.sequence_ratio = static_cast<double>(count.kept) / all;
  asked.recompute_ratio = static_cast<double>(count.recomputed) / all;
  asked.recompute_ratio_of_kept = static_cast<double>(count.recomputed) / static_cast<double>(count.kept);
  const StageTimer timer(asked, "answer");
  asked.logits = context.session.extend(asked.cache, context.question);
}

void recompute_everywhere(const AskContext& context, std::span<const std::int32_t> positions) {
  const auto& joint = context.joint;
  Assembly assembly(context.impl(), joint, context.cache, joint.tokens());
  {
    const StageTimer timer(context.asked, "assemble");
    std::vector<Token> tokens;
    for (const auto position : positions) tokens.push_back(joint.token_id(position));
    Pass pass(context.impl(), tokens, positions);
    const std::vector<int> top(joint.tokens(), context.hparams().n_layer - 1);
    for (int layer = 0; layer < context.hparams().n_layer; ++layer)
      assembly.layer(layer, joint.everything(), pass, positions, top);
  }
  answer(context, assembly);
}

}  // namespace documents

Asked ask(Session& session, std::span<const std::shared_ptr<const documents::Document>> documents,
          std::span<const Token> question, const AskOptions& options) {
  options.check();
  if (documents.empty()) throw InputError("there are no documents to ask about");
  if (question.empty()) throw InputError("the question is empty: there is nothing to ask");
  std::vector<std::shared_ptr<const documents::Document>> used(documents.begin(), documents.end());
  std::vector<RecomputedDocument> recomputed;
  const double begin = documents::now();
  for (;;) {  // each time another document is found to be unreadable, and one that was recomputed never is
    const double attempt = documents::now();
    try {
      Asked asked = documents::ask_once(session, used, question, options);
      if (!recomputed.empty()) asked.stages.insert(asked.stages.begin(), {"recompute", attempt - begin});
      asked.recomputed_documents = std::move(recomputed);
      return asked;
    } catch (const documents::UnreadableError& error) {
      if (options.unreadable == UnreadableDocument::is_an_error) throw;
      const auto lost = used[error.document()];
      const auto instead = documents::recomputed(session, *lost);
      for (std::size_t i = 0; i < used.size(); ++i) {
        if (used[i] != lost) continue;
        used[i] = instead;
        recomputed.push_back({static_cast<int>(i), error.what(), instead});
      }
    }
  }
}

}  // namespace winnow
