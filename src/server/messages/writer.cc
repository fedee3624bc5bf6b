// SPDX-License-Identifier: Apache-2.0
#include "server/messages/writer.h"

#include <utility>

#include "base/json.h"
#include "server/messages/errors.h"

namespace winnow::server {

namespace {

/// Tokens that were not read because they were stored are counted by themselves. None are paid for to be stored.
Json messages_usage(const AnswerCost& cost) {
  return {{"input_tokens", cost.prompt_tokens - cost.cached_tokens},
          {"cache_creation_input_tokens", 0},
          {"cache_read_input_tokens", cost.cached_tokens},
          {"output_tokens", cost.answer_tokens}};
}

const char* stop_reason_of(const AnswerEnd& end) {
  if (end.reason == FinishReason::length) return "max_tokens";
  if (!end.stop.empty()) return "stop_sequence";
  return end.has_called ? "tool_use" : "end_turn";
}

/// A model may write what is no object, or too deep to be told.
Json input_of(const std::string& arguments) {
  try {
    Json out = parse_json<Json>(arguments);
    if (out.is_object()) return out;
  } catch (const JsonError&) {
  }
  return Json::object();
}

Json blocks_of(const AnswerPiece& piece) {
  Json out = Json::array();
  if (!piece.reasoning.empty()) out.push_back({{"type", "thinking"}, {"thinking", piece.reasoning}, {"signature", ""}});
  if (!piece.text.empty()) out.push_back({{"type", "text"}, {"text", piece.text}});
  for (const auto& call : piece.calls)
    out.push_back({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", input_of(call.arguments)}});
  return out;
}

}  // namespace

void MessageWriter::write(const Json& event) { to_->write(named_event(event)); }

Json MessageWriter::message(const AnswerCost& cost) const {
  return {{"id", plan_.head.id},      {"type", "message"},
          {"role", "assistant"},      {"model", plan_.head.model},
          {"content", Json::array()}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr}, {"usage", messages_usage(cost)}};
}

void MessageWriter::refused(const std::exception_ptr& why) { to_->send(messages_error(why)); }

void MessageWriter::begun() {
  if (!plan_.form.stream) return;
  to_->begin();
  write({{"type", "message_start"}, {"message", message(plan_.cost)}});
  goes_on();
}

void MessageWriter::goes_on() {
  if (plan_.form.stream) write({{"type", "ping"}});
}

void MessageWriter::open(Block kind, Json block) {
  close();
  block_ = kind;
  write({{"type", "content_block_start"}, {"index", blocks_++}, {"content_block", std::move(block)}});
}

void MessageWriter::close() {
  if (!block_) return;
  if (block_ == Block::thinking) delta({{"type", "signature_delta"}, {"signature", ""}});
  block_.reset();
  write({{"type", "content_block_stop"}, {"index", blocks_ - 1}});
}

void MessageWriter::delta(Json delta) {
  write({{"type", "content_block_delta"}, {"index", blocks_ - 1}, {"delta", std::move(delta)}});
}

void MessageWriter::piece(int /*choice*/, AnswerPiece piece, const AnswerCost& /*now*/) {
  if (!plan_.form.stream) {
    whole_ = std::move(piece);
    return;
  }
  if (!piece.reasoning.empty()) {
    if (block_ != Block::thinking) open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
    delta({{"type", "thinking_delta"}, {"thinking", piece.reasoning}});
  }
  if (!piece.text.empty()) {
    if (block_ != Block::text) open(Block::text, {{"type", "text"}, {"text", ""}});
    delta({{"type", "text_delta"}, {"text", piece.text}});
  }
  for (const auto& call : piece.calls) {
    if (!call.name.empty())
      open(Block::call, {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", Json::object()}});
    if (!call.arguments.empty()) delta({{"type", "input_json_delta"}, {"partial_json", call.arguments}});
  }
}

void MessageWriter::ended(int /*choice*/, const AnswerEnd& end, const AnswerCost& /*now*/) { end_ = end; }

void MessageWriter::finished(const AnswerCost& cost) {
  const Json stop = text_or_null(end_.stop);
  if (!plan_.form.stream) {
    Json out = message(cost);
    out["content"] = blocks_of(whole_);
    out["stop_reason"] = stop_reason_of(end_);
    out["stop_sequence"] = stop;
    out["winnow"] = keeping_json(cost);
    out["timings"] = timings_json(cost);
    return to_->send({.body = text_of(out)});
  }
  close();
  write({{"type", "message_delta"},
         {"delta", {{"stop_reason", stop_reason_of(end_)}, {"stop_sequence", stop}}},
         {"usage", messages_usage(cost)},
         {"winnow", keeping_json(cost)},
         {"timings", timings_json(cost)}});
  write({{"type", "message_stop"}});
  to_->end();
}

void MessageWriter::failed(const std::exception_ptr& error) {
  if (!plan_.form.stream) return to_->send(messages_error(error));
  to_->write(messages_error_event(error));
  to_->end();
}

}  // namespace winnow::server
