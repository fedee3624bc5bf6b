// SPDX-License-Identifier: Apache-2.0
#include "server/infill/writer.h"

#include <utility>

#include "server/openai/errors.h"

namespace winnow::server {

namespace {

const char* stop_type(const AnswerEnd& end) {
  if (end.reason == FinishReason::length) return "limit";
  return end.stop.empty() ? "eos" : "word";
}

}  // namespace

void InfillWriter::refused(const std::exception_ptr& why) { to_->send(error_reply(why)); }

void InfillWriter::begun() {
  if (plan_.form.stream) to_->begin();
}

void InfillWriter::goes_on() {
  if (plan_.form.stream) to_->write(": \n\n");
}

void InfillWriter::piece(int choice, AnswerPiece piece, const AnswerCost& /*now*/) {
  if (!plan_.form.stream) {
    text_ = std::move(piece.text);
    return;
  }
  to_->write(event({{"index", choice}, {"content", piece.text}, {"stop", false}}));
}

void InfillWriter::ended(int /*choice*/, const AnswerEnd& end, const AnswerCost& /*now*/) { end_ = end; }

void InfillWriter::finished(const AnswerCost& cost) {
  const Json out{{"index", 0},
                 {"content", text_},
                 {"stop", true},
                 {"model", plan_.head.model},
                 {"stop_type", stop_type(end_)},
                 {"stopping_word", end_.stop},
                 {"tokens_predicted", cost.answer_tokens},
                 {"tokens_evaluated", cost.prompt_tokens},
                 {"tokens_cached", cost.cached_tokens},
                 {"truncated", false},
                 {"winnow", keeping_json(cost)},
                 {"timings", timings_json(cost)}};
  if (!plan_.form.stream) return to_->send({.body = text_of(out)});
  to_->write(event(out));
  to_->end();
}

void InfillWriter::failed(const std::exception_ptr& error) {
  if (!plan_.form.stream) return to_->send(error_reply(error));
  to_->write("data: " + error_text(error) + "\n\n");
  to_->end();
}

}  // namespace winnow::server
