// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template and, after a zero byte, an answer to it: the template is refused with a TemplateError or
// formats all messages, and the answer's deltas add up to its message.
#include <array>
#include <cstdlib>
#include <string>
#include <string_view>

#include "chat/template.h"

namespace {

using namespace winnow;

void must(bool holds) {
  if (!holds) std::abort();
}

const std::array<chat::Tool, 1>& tools() {
  static const std::array<chat::Tool, 1> one{
      {{"f", "It does.", R"({"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "integer"}}})"}}};
  return one;
}

const std::vector<Message>& messages() {
  static const std::vector<Message> said = [] {
    std::vector<Message> out{{Role::system, "Rule."}, {Role::user, "Question?"}, {Role::assistant, "I look."}};
    out.back().reasoning = "Well.";
    out.back().calls = {{"call00001", "f", R"({"a": "x"})"}};
    out.push_back({Role::tool, "Result."});
    out.back().call_id = "call00001";
    out.back().tool_name = "f";
    out.push_back({Role::assistant, "Answer."});
    out.push_back({Role::user, "More?"});
    return out;
  }();
  return said;
}

void add(Message& to, const chat::Delta& delta) {
  to.content += delta.content;
  to.reasoning += delta.reasoning;
  for (const auto& call : delta.calls) {
    must(call.index <= to.calls.size());
    if (call.index == to.calls.size()) to.calls.emplace_back();
    to.calls[call.index].id += call.more.id;
    to.calls[call.index].name += call.more.name;
    to.calls[call.index].arguments += call.more.arguments;
  }
}

void read(const chat::AnswerFormat& format, std::string_view text) {
  chat::AnswerReader reader(format);
  Message sum{Role::assistant, {}};
  for (std::size_t i = 0; i < text.size(); i += 7) add(sum, reader.add(text.substr(i, 7)));
  add(sum, reader.end());
  must(sum == reader.message());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view bytes(data, size);
  const auto end = std::min(bytes.find('\0'), size);
  try {
    const chat::Template one("fuzz", {std::string(bytes.substr(0, end))}, "<s>", "</s>");
    chat::Input input;
    input.messages = messages();
    for (const auto& used : {std::span<const chat::Tool>(), std::span<const chat::Tool>(tools())}) {
      input.tools = used;
      const auto rendering = one.render(input);
      must(rendering.messages.size() == messages().size());
      for (const auto& stretch : rendering.text.input)
        must(stretch.begin < stretch.end && stretch.end <= rendering.text.text.size());
      if (end < size) read(rendering.answer, bytes.substr(end + 1));
    }
  } catch (const chat::TemplateError&) {
  }
  return 0;
}
