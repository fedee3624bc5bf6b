// SPDX-License-Identifier: Apache-2.0
#include "server/messages/writer.h"

#include <spdlog/fmt/fmt.h>

#include <cctype>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "server/messages/errors.h"

namespace winnow::server {

namespace {

/// Usage in the API's terms: stored tokens that were not read again are reported separately, and storing costs no
/// tokens.
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

/// The text of an object with an additional member, whose value is given as JSON.
std::string with_member(const Json& object, const char* name, const std::string& value) {
  std::string out = text_of(object);
  out.pop_back();
  return fmt::format("{},\"{}\":{}}}", out, name, value);
}

/// Cuts numbers in JSON to two digits, so that none is too large to parse.
std::string with_short_numbers(std::string_view json) {
  std::string out;
  std::size_t digits = 0;
  bool is_quoted = false;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const bool is_digit = !is_quoted && std::isdigit(static_cast<unsigned char>(json[i])) != 0;
    digits = is_digit ? digits + 1 : 0;
    if (digits > 2) continue;
    out += json[i];
    if (json[i] == '"') is_quoted = !is_quoted;
    if (is_quoted && json[i] == '\\' && i + 1 < json.size()) out += json[++i];
  }
  return out;
}

/// Arguments as the model wrote them; {} if they are not an object or nested too deeply.
std::string input_of(const std::string& arguments) {
  try {
    if (parse_json<Json>(with_short_numbers(arguments)).is_object()) return arguments;
  } catch (const JsonError&) {
  }
  return "{}";
}

std::string blocks_of(const AnswerDelta& delta) {
  std::vector<std::string> out;
  if (!delta.reasoning.empty())
    out.push_back(text_of({{"type", "thinking"}, {"thinking", delta.reasoning}, {"signature", ""}}));
  if (!delta.text.empty()) out.push_back(text_of({{"type", "text"}, {"text", delta.text}}));
  for (const auto& call : delta.calls)
    out.push_back(
        with_member({{"type", "tool_use"}, {"id", call.id}, {"name", call.name}}, "input", input_of(call.arguments)));
  return fmt::format("[{}]", fmt::join(out, ","));
}

}  // namespace

Json MessageWriter::message(const AnswerCost& cost) const {
  return {{"id", plan().head.id},     {"type", "message"},
          {"role", "assistant"},      {"model", plan().head.model},
          {"content", Json::array()}, {"stop_reason", nullptr},
          {"stop_sequence", nullptr}, {"usage", messages_usage(cost)}};
}

HttpReply MessageWriter::error_reply_for(const std::exception_ptr& error) const { return messages_error(error); }

void MessageWriter::tell_failure(const std::exception_ptr& error) { write(messages_error_event(error)); }

void MessageWriter::open_stream() {
  tell({{"type", "message_start"}, {"message", message(plan().cost)}});
  tell_going_on();
}

void MessageWriter::open(Block kind, Json block) {
  close();
  block_ = kind;
  tell({{"type", "content_block_start"}, {"index", blocks_++}, {"content_block", std::move(block)}});
}

void MessageWriter::close() {
  if (!block_) return;
  if (block_ == Block::thinking) tell_delta({{"type", "signature_delta"}, {"signature", ""}});
  block_.reset();
  tell({{"type", "content_block_stop"}, {"index", blocks_ - 1}});
}

void MessageWriter::tell_delta(Json delta) {
  tell({{"type", "content_block_delta"}, {"index", blocks_ - 1}, {"delta", std::move(delta)}});
}

void MessageWriter::delta(int /*choice*/, AnswerDelta delta, const AnswerCost& /*now*/) {
  if (!is_streamed()) {
    whole_ = std::move(delta);
    return;
  }
  if (!delta.reasoning.empty()) {
    if (block_ != Block::thinking) open(Block::thinking, {{"type", "thinking"}, {"thinking", ""}, {"signature", ""}});
    tell_delta({{"type", "thinking_delta"}, {"thinking", delta.reasoning}});
  }
  if (!delta.text.empty()) {
    if (block_ != Block::text) open(Block::text, {{"type", "text"}, {"text", ""}});
    tell_delta({{"type", "text_delta"}, {"text", delta.text}});
  }
  for (const auto& call : delta.calls) {
    if (!call.name.empty())
      open(Block::call, {{"type", "tool_use"}, {"id", call.id}, {"name", call.name}, {"input", Json::object()}});
    if (!call.arguments.empty()) tell_delta({{"type", "input_json_delta"}, {"partial_json", call.arguments}});
  }
}

void MessageWriter::finished(const AnswerCost& cost) {
  const Json stop = text_or_null(end().stop);
  if (!is_streamed()) {
    Json out = message(cost);
    out.erase("content");
    out["stop_reason"] = stop_reason_of(end());
    out["stop_sequence"] = stop;
    out["winnow"] = keeping_json(cost);
    out["timings"] = timings_json(cost);
    return send(with_member(out, "content", blocks_of(whole_)));
  }
  close();
  tell({{"type", "message_delta"},
        {"delta", {{"stop_reason", stop_reason_of(end())}, {"stop_sequence", stop}}},
        {"usage", messages_usage(cost)},
        {"winnow", keeping_json(cost)},
        {"timings", timings_json(cost)}});
  tell({{"type", "message_stop"}});
  end_stream();
}

}  // namespace winnow::server
