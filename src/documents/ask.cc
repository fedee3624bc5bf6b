// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <utility>

#include "base/as_size.h"
#include "documents/ask_method.h"
#include "documents/asking.h"
#include "documents/ingest.h"
#include "documents/resident.h"
#include "engine/extension.h"
#include "winnow/error.h"

namespace winnow {

namespace documents {

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// Reads a document's tokens again, with the options with which it was added.
std::shared_ptr<const Document> recomputed(Session& session, const Document& document) {
  const auto& saved = document.head().saved;
  const auto& all = saved.transcript.tokens;
  return resident(
      ingest(session, {"", ControlTokens::as_text, {all.begin(), all.begin() + document.tokens()}}, saved.options));
}

}  // namespace

PhaseTimer::PhaseTimer(Asked& asked, std::string name) : asked_(asked), name_(std::move(name)), begin_(now()) {}
PhaseTimer::~PhaseTimer() { asked_.phases.push_back({std::move(name_), now() - begin_}); }

Steps answer(const AskContext& context, Assembly& assembly) {
  auto& asked = context.asked;
  asked.cache = assembly.finish();
  const auto& count = assembly.count();
  const double all = static_cast<double>(context.joint.tokens()) * context.hparams().n_layer;
  asked.sequence_ratio = static_cast<double>(count.kept) / all;
  asked.recompute_ratio = static_cast<double>(count.recomputed) / all;
  asked.recompute_ratio_of_kept = static_cast<double>(count.recomputed) / static_cast<double>(count.kept);
  const PhaseTimer timer(asked, "answer");
  engine::Extension question(context.session, engine::sequence_of(asked.cache), context.question);
  for (bool goes_on = true; goes_on;) {
    context.session.check_stop();
    goes_on = question.advance();
    co_yield kPause;
  }
  asked.logits = question.take_logits();
}

Steps recompute_everywhere(const AskContext& context, std::vector<std::int32_t> positions) {
  const auto& joint = context.joint;
  Assembly assembly(context.session, joint, context.cache, joint.tokens());
  {
    const PhaseTimer timer(context.asked, "assemble");
    std::vector<Token> tokens;
    for (const auto position : positions) tokens.push_back(joint.token_id(position));
    ChosenTokens chosen(context.session, tokens, positions);
    const std::vector<int> top(joint.tokens(), context.hparams().n_layer - 1);
    for (int layer = 0; layer < context.hparams().n_layer; ++layer) {
      assembly.layer(layer, joint.everything(), chosen, positions, top);
      co_yield kPause;
    }
  }
  auto answering = answer(context, assembly);
  while (answering.advance()) co_yield kPause;
}

}  // namespace documents

Asked ask(Session& session, std::span<const std::shared_ptr<const documents::Document>> documents,
          std::span<const Token> question, const AskOptions& options) {
  std::vector<std::shared_ptr<const documents::Document>> used(documents.begin(), documents.end());
  std::vector<RecomputedDocument> recomputed;
  const double begin = documents::now();
  for (;;) {  // ends, because each attempt replaces another unreadable document
    const double attempt = documents::now();
    try {
      documents::Asking asking(used, {question.begin(), question.end()}, options);
      asking.begin(engine::parts_of(session));
      while (asking.advance()) continue;
      Asked asked = asking.take();
      if (!recomputed.empty()) asked.phases.insert(asked.phases.begin(), {"recompute", attempt - begin});
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
