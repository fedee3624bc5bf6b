// SPDX-License-Identifier: Apache-2.0
#include "engine/saved_head.h"

#include <spdlog/fmt/fmt.h>

#include <utility>

#include "base/as_size.h"

namespace winnow::engine {

namespace {

constexpr std::int32_t kMostTokens = std::int32_t{1} << 30U;  ///< later positions must fit, too

ElementType element_type(std::uint32_t code, const ByteCursor& from) {
  constexpr auto kLast = static_cast<std::uint32_t>(ElementType::q4_0);
  if (code > kLast) from.fail(fmt::format("the entries' type is {}, expected 0 to {}", code, kLast));
  return static_cast<ElementType>(code);
}

/// Reads an enum of two values.
template <class Enum>
Enum choice(std::uint32_t code, const char* what, const ByteCursor& from) {
  if (code > 1) from.fail(fmt::format("{} is {}, expected 0 or 1", what, code));
  return static_cast<Enum>(code);
}

CacheOptions read_options(ByteCursor& from, std::string& spec_full) {
  const std::string spec = from.text("the spec");
  spec_full = from.text("the full spec");
  const std::string budget = from.text("the budget");
  CacheOptions options;
  options.kv_type.key = element_type(from.take<std::uint32_t>("the keys' type"), from);
  options.kv_type.value = element_type(from.take<std::uint32_t>("the values' type"), from);
  return as_typed(from, [&] {
    options.spec = Spec::parse(spec);
    if (!budget.empty()) options.budget = Budget::parse(budget);
    options.check();
    return options;
  });
}

/// Flag in a prompt's number of tokens: the number of question tokens follows the terms. Older files lack it.
constexpr std::uint32_t kWithQuestion = 1U << 31U;

void write_terms(ByteSink& to, const policy::Terms& terms) {
  const auto& [prompt, budget, always_kept] = terms;
  put(to, static_cast<std::uint32_t>(prompt.tokens) | (prompt.question > 0 ? kWithQuestion : 0));
  for (const auto number : {prompt.group, budget, always_kept.sinks, always_kept.recent}) put(to, number);
  if (prompt.question > 0) put(to, prompt.question);
}

policy::Terms read_terms(ByteCursor& from) {
  constexpr const char* kWhat = "the prompt's budget";
  policy::Terms terms;
  const auto tokens = from.take<std::uint32_t>(kWhat);
  terms.prompt.tokens = static_cast<int>(tokens & ~kWithQuestion);
  for (auto* const number : {&terms.prompt.group, &terms.budget, &terms.always_kept.sinks, &terms.always_kept.recent})
    *number = from.take<std::int32_t>(kWhat);
  if ((tokens & kWithQuestion) != 0) terms.prompt.question = from.take<std::int32_t>(kWhat);
  return terms;
}

/// Flag in a number of messages: each message begins with its role. Older files have a system message first, and then
/// messages of user and assistant in turn.
constexpr std::uint32_t kWithRoles = 1U << 31U;

/// Flag in a role: fields besides the content follow.
constexpr std::uint32_t kWithMore = 1U << 31U;

void write_message(ByteSink& to, const Message& message) {
  const bool has_more = message != Message{message.role, message.content};
  put(to, static_cast<std::uint32_t>(message.role) | (has_more ? kWithMore : 0));
  put(to, std::string_view(message.content));
  if (!has_more) return;
  for (const auto* const text : {&message.reasoning, &message.call_id, &message.tool_name})
    put(to, std::string_view(*text));
  put(to, static_cast<std::uint32_t>(message.calls.size()));
  for (const auto& call : message.calls) {
    for (const auto* const text : {&call.id, &call.name, &call.arguments}) put(to, std::string_view(*text));
  }
}

void write_transcript(ByteSink& to, const Transcript& transcript) {
  const auto& [conversation, tokens] = transcript;
  put(to, static_cast<std::uint32_t>(conversation.format));
  put(to, static_cast<std::uint32_t>(conversation.control));
  put(to, std::string_view());
  put(to, std::string_view(conversation.text));
  put(to, static_cast<std::uint32_t>(conversation.messages.size()) | kWithRoles);
  for (const auto& message : conversation.messages) write_message(to, message);
  put(to, static_cast<std::uint32_t>(tokens.size()));
  put(to, std::span<const Token>(tokens));
}

/// Checks a number of items of at least four bytes each, so that a list of them can be allocated safely.
std::size_t checked_count(std::uint32_t count, const char* what, const ByteCursor& from) {
  if (count > from.left() / 4)
    from.fail(fmt::format("{} are {}, but only {} bytes are left", what, count, from.left()));
  return count;
}

Message read_message(ByteCursor& from) {
  const auto head = from.take<std::uint32_t>("a message's role");
  const auto code = head & ~kWithMore;
  constexpr auto kLast = static_cast<std::uint32_t>(Role::tool);
  if (code > kLast) from.fail(fmt::format("a message's role is {}, expected 0 to {}", code, kLast));
  Message out{static_cast<Role>(code), from.text("a message")};
  if ((head & kWithMore) == 0) return out;
  out.reasoning = from.text("a message's thinking");
  out.call_id = from.text("the call that a message answers");
  out.tool_name = from.text("a tool's name");
  for (auto left = checked_count(from.take<std::uint32_t>("the calls"), "the calls", from); left > 0; --left) {
    ToolCall& call = out.calls.emplace_back();
    call.id = from.text("a call's id");
    call.name = from.text("a call's name");
    call.arguments = from.text("a call's arguments");
  }
  return out;
}

Conversation read_conversation(ByteCursor& from) {
  Conversation out;
  out.format = choice<PromptFormat>(from.take<std::uint32_t>("the prompt's format"), "the prompt's format", from);
  out.control =
      choice<ControlTokens>(from.take<std::uint32_t>("the use of control tokens"), "the use of control tokens", from);
  const std::string system = from.text("the system message");
  out.text = from.text("the text");
  const auto count = from.take<std::uint32_t>("the messages");
  if (!system.empty()) out.messages.push_back({Role::system, system});
  for (std::size_t left = checked_count(count & ~kWithRoles, "the messages", from); left > 0; --left) {
    const Role next = out.awaits_answer() ? Role::assistant : Role::user;
    out.messages.push_back((count & kWithRoles) != 0 ? read_message(from) : Message{next, from.text("a message")});
  }
  return out;
}

Transcript read_transcript(ByteCursor& from, int seen, int vocabulary) {
  Transcript out{read_conversation(from), {}};
  out.tokens.resize(checked_count(from.take<std::uint32_t>("the tokens"), "the tokens", from));
  from.read(std::span<Token>(out.tokens), "the tokens");
  const auto count = out.tokens.size();
  if (count < as_size(seen) || count > as_size(kMostTokens))
    from.fail(fmt::format("it has {} tokens, but {} have been seen", count, seen));
  for (const Token token : out.tokens) {
    if (token < 0 || token >= vocabulary)
      from.fail(fmt::format("a token is {}, but the vocabulary has {} tokens", token, vocabulary));
  }
  return out;
}

}  // namespace

void SavedHead::write(ByteSink& to) const {
  put(to, std::string_view(options.spec.print()));
  put(to, std::string_view(spec_full));
  put(to, std::string_view(options.budget ? options.budget->print() : ""));
  put(to, static_cast<std::uint32_t>(options.kv_type.key));
  put(to, static_cast<std::uint32_t>(options.kv_type.value));
  model.write(to);
  put(to, seen);
  write_terms(to, terms);
  for (const auto& layer : limit) put(to, std::span<const int>(layer));
  write_transcript(to, transcript);
}

SavedHead SavedHead::read(ByteCursor& from, int sections) {
  SavedHead head;
  head.options = read_options(from, head.spec_full);
  head.model = ModelIdentity::read(from);
  if (sections < 2 || head.model.layers != sections - 2)
    from.fail(fmt::format("it has {} sections for {} layers", sections, head.model.layers));
  head.seen = from.take<std::int32_t>("the number of tokens");
  if (head.seen < 1 || head.seen > kMostTokens)
    from.fail(fmt::format("{} tokens have been seen, expected 1 to {}", head.seen, kMostTokens));
  head.terms = read_terms(from);
  head.terms.prompt.head_dim = head.model.of_layer(head.model.first_global()).head_dim;
  for (int layer = 0; layer < head.model.layers; ++layer) {
    const auto heads = as_size(head.model.of_layer(layer).kv_heads);
    if (heads > from.left() / sizeof(std::int32_t))
      from.fail(fmt::format("its head is too short for the limits of {} KV heads of layer {}", heads, layer));
    from.read(std::span<int>(head.limit.emplace_back(heads)), "a layer's limits");
  }
  head.transcript = read_transcript(from, head.seen, head.model.vocabulary);
  from.finish("the head");
  return head;
}

SavedHead head_of(const Sequence& sequence, const ModelIdentity& model, Transcript transcript) {
  return {sequence.options(),   sequence.options().spec.print_full(),         model,
          sequence.seen,        sequence.layer(model.first_global()).terms(), sequence.limits(),
          std::move(transcript)};
}

}  // namespace winnow::engine
