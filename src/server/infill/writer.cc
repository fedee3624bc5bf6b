// SPDX-License-Identifier: Apache-2.0
#include "server/infill/writer.h"

#include <utility>

namespace winnow::server {

namespace {

const char* stop_type(const AnswerEnd& end) {
  if (end.reason == FinishReason::length) return "limit";
  return end.stop.empty() ? "eos" : "word";
}

}  // namespace

void InfillWriter::delta(int choice, AnswerDelta delta, const AnswerCost& /*now*/) {
  if (!is_streamed()) {
    text_ = std::move(delta.text);
    return;
  }
  write(event({{"index", choice}, {"content", delta.text}, {"stop", false}}));
}

void InfillWriter::finished(const AnswerCost& cost) {
  const Json out{{"index", 0},
                 {"content", text_},
                 {"stop", true},
                 {"model", plan().head.model},
                 {"stop_type", stop_type(end())},
                 {"stopping_word", end().stop},
                 {"tokens_predicted", cost.answer_tokens},
                 {"tokens_evaluated", cost.prompt_tokens},
                 {"tokens_cached", cost.cached_tokens},
                 {"truncated", false},
                 {"winnow", keeping_json(cost)},
                 {"timings", timings_json(cost)}};
  if (!is_streamed()) return send(text_of(out));
  write(event(out));
  end_stream();
}

}  // namespace winnow::server
