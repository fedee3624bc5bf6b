// SPDX-License-Identifier: Apache-2.0
#include "server/openai/choices_writer.h"

#include <utility>

#include "base/as_size.h"

namespace winnow::server {

ChoicesWriter::ChoicesWriter(std::shared_ptr<const Model> model, AnswerPlan plan, std::shared_ptr<Responder> to)
    : SurfaceWriter(std::move(plan), std::move(to)), model_(std::move(model)) {
  answers_.resize(this->plan().prompt_tokens.size() * as_size(this->plan().form.answers));
}

void ChoicesWriter::open_stream() {
  const Json first = first_chunk();
  if (first.is_null()) return;
  for (std::size_t i = 0; i < answers_.size(); ++i) {
    Json choice{{"index", i}};
    choice.update(first);
    choice["logprobs"] = nullptr;
    choice["finish_reason"] = nullptr;
    write(event(chunk(std::move(choice), plan().cost)));
  }
}

Json ChoicesWriter::chunk(Json choice, const AnswerCost& now) const {
  Json out = head_json(plan().head, chunk_object());
  out["choices"] = Json::array({std::move(choice)});
  if (plan().form.usage_in_chunks) {
    out["usage"] = usage_json(now);
  } else if (plan().form.usage_at_end) {
    out["usage"] = nullptr;
  }
  return out;
}

Json ChoicesWriter::delta_json(int choice, const AnswerDelta& delta, const char* finish, const AnswerCost& now) {
  Json out{{"index", choice}};
  put_delta(out, delta);
  out["logprobs"] = delta.tokens.empty() ? Json(nullptr) : logprobs(choice, delta.tokens);
  out["finish_reason"] = finish == nullptr ? Json(nullptr) : Json(finish);
  return chunk(std::move(out), now);
}

void ChoicesWriter::delta(int choice, AnswerDelta delta, const AnswerCost& now) {
  if (is_streamed()) {
    write(event(delta_json(choice, delta, nullptr, now)));
  } else {
    answers_[as_size(choice)].answer = std::move(delta);
  }
}

void ChoicesWriter::ended(int choice, const AnswerEnd& end, const AnswerCost& now) {
  answers_[as_size(choice)].end = end;
  if (!is_streamed()) return;
  Json last = delta_json(choice, {}, finish_of(end), now);
  if (end.is_of_last_prompt) {
    last["winnow"] = keeping_json(now);
    last["timings"] = timings_json(now);
  }
  write(event(last));
}

Json ChoicesWriter::whole_json(int choice) {
  const Whole& whole = answers_[as_size(choice)];
  Json out{{"index", choice}};
  put_whole(out, whole);
  out["logprobs"] = plan().form.alternatives ? logprobs(choice, whole.answer.tokens) : Json(nullptr);
  out["finish_reason"] = finish_of(whole.end);
  complete(out, whole);
  return out;
}

void ChoicesWriter::finished(const AnswerCost& cost) {
  if (is_streamed()) {
    if (plan().form.usage_at_end) {
      Json last = head_json(plan().head, chunk_object());
      last["choices"] = Json::array();
      last["usage"] = usage_json(cost);
      write(event(last));
    }
    write("data: [DONE]\n\n");
    return end_stream();
  }
  Json out = head_json(plan().head, whole_object());
  out["choices"] = Json::array();
  for (std::size_t i = 0; i < answers_.size(); ++i) out["choices"].push_back(whole_json(static_cast<int>(i)));
  out["usage"] = usage_json(cost);
  out["winnow"] = keeping_json(cost);
  out["timings"] = timings_json(cost);
  send(text_of(out));
}

}  // namespace winnow::server
