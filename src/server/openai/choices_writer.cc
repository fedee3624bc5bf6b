// SPDX-License-Identifier: Apache-2.0
#include "server/openai/choices_writer.h"

#include <utility>

#include "base/as_size.h"
#include "server/openai/errors.h"

namespace winnow::server {

ChoicesWriter::ChoicesWriter(std::shared_ptr<const Model> model, AnswerPlan plan, std::shared_ptr<Responder> to)
    : model_(std::move(model)), plan_(std::move(plan)), to_(std::move(to)) {
  answers_.resize(plan_.prompt_tokens.size() * as_size(plan_.form.answers));
}

void ChoicesWriter::refused(const std::exception_ptr& why) { to_->send(error_reply(why)); }

void ChoicesWriter::begun() {
  if (!plan_.form.stream) return;
  to_->begin();
  const Json first = first_chunk();
  if (first.is_null()) return;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    Json choice{{"index", i}};
    choice.update(first);
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = nullptr;
    to_->write(event(chunk(std::move(choice), plan_.cost)));
  }
}

void ChoicesWriter::goes_on() {
  if (plan_.form.stream) to_->write(": \n\n");
}

Json ChoicesWriter::chunk(Json choice, const AnswerCost& now) const {
  Json out = head_json(plan_.head, chunk_object());
  out["choices"] = Json::array({std::move(choice)});
  if (plan_.form.usage_in_chunks) {
    out["usage"] = usage_json(now);
  } else if (plan_.form.usage_at_end) {
    out["usage"] = nullptr;
  }
  return out;
}

Json ChoicesWriter::piece_json(int choice, const AnswerPiece& piece, const char* finish, const AnswerCost& now) {
  Json out{{"index", choice}};
  put_piece(out, piece);
  out["logprobs"] = piece.tokens.empty() ? Json(nullptr) : logprobs(choice, piece.tokens);
  out["finish_reason"] = finish == nullptr ? Json(nullptr) : Json(finish);
  return chunk(std::move(out), now);
}

void ChoicesWriter::piece(int choice, AnswerPiece piece, const AnswerCost& now) {
  if (plan_.form.stream) {
    to_->write(event(piece_json(choice, piece, nullptr, now)));
  } else {
    answers_[as_size(choice)].piece = std::move(piece);
  }
}

void ChoicesWriter::ended(int choice, const AnswerEnd& end, const AnswerCost& now) {
  answers_[as_size(choice)].end = end;
  if (!plan_.form.stream) return;
  Json last = piece_json(choice, {}, finish_of(end), now);
  if (end.is_of_last_prompt) {
    last["winnow"] = keeping_json(now);
    last["timings"] = timings_json(now);
  }
  to_->write(event(last));
}

Json ChoicesWriter::whole_json(int choice) {
  const Whole& whole = answers_[as_size(choice)];
  Json out{{"index", choice}};
  put_whole(out, whole);
  out["logprobs"] = plan_.form.alternatives ? logprobs(choice, whole.piece.tokens) : Json(nullptr);
  out["finish_reason"] = finish_of(whole.end);
  complete(out, whole);
  return out;
}

void ChoicesWriter::finished(const AnswerCost& cost) {
  if (plan_.form.stream) {
    if (plan_.form.usage_at_end) {
      Json last = head_json(plan_.head, chunk_object());
      last["choices"] = Json::array();
      last["usage"] = usage_json(cost);
      to_->write(event(last));
    }
    to_->write("data: [DONE]\n\n");
    return to_->end();
  }
  Json out = head_json(plan_.head, whole_object());
  out["choices"] = Json::array();
  for (std::size_t i = 0; i < answers_.size(); ++i) out["choices"].push_back(whole_json(static_cast<int>(i)));
  out["usage"] = usage_json(cost);
  out["winnow"] = keeping_json(cost);
  out["timings"] = timings_json(cost);
  to_->send({.body = text_of(out)});
}

void ChoicesWriter::failed(const std::exception_ptr& error) {
  if (!plan_.form.stream) return to_->send(error_reply(error));
  to_->write("data: " + error_text(error) + "\n\n");
  to_->end();
}

}  // namespace winnow::server
