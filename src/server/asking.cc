// SPDX-License-Identifier: Apache-2.0
#include "server/asking.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "base/as_size.h"
#include "base/clock.h"
#include "base/printable.h"
#include "chat/schema.h"
#include "engine/wording.h"
#include "server/answers/answering.h"
#include "server/conversations/conversation_answer.h"
#include "server/digest.h"
#include "server/documents/asking_source.h"
#include "server/documents/routes.h"
#include "server/openai/answer.h"
#include "server/openai/cache_fields.h"
#include "server/openai/errors.h"

namespace winnow::server {

namespace {

/// Facts about a request that are known before it is answered, and stored until it has finished.
std::shared_ptr<FinishedRequest> finished_request(const AnswerPlan& plan, const std::string& key,
                                                  const Prompt& prompt) {
  auto tokens = prompt.text;
  tokens.insert(tokens.end(), prompt.question.begin(), prompt.question.end());
  return std::make_shared<FinishedRequest>(
      FinishedRequest{plan.head.id, key, plan.cost.spec, plan.cost.budget, std::move(tokens), nullptr});
}

/// Identifies the requests that share texts: those with the same salt, or else those with the same key. A digest, since
/// it is stored as long as the text.
std::string shared_by(const AnswerForm& form, const Asker& asker) {
  return digest_of(form.cache_salt ? "salt " + *form.cache_salt : "key " + asker.key);
}

/// Repeated fields are in each event of an answer, and stored until it has ended.
std::size_t bytes_of_repeated(const Json& repeated) { return 2 * text_of(repeated).size(); }

/// Makes the whole text a stage if the budget is a share: a stage gets at least what the method needs, however short
/// it is.
void raise_share(Request& request) {
  const bool is_share = request.keep.budget && request.keep.budget->unit() == Budget::Unit::percent;
  auto& text = request.text();
  if (is_share && text.stages.empty() && !text.prompt_logprobs) text.stages = {text.tokens.size()};
}

/// Throws unless a request can be a turn of a stored conversation: it asks for one answer, which is a message of its
/// own.
void check_turn(const AskedConversation& chat, const AnswerForm& form) {
  if (form.answers > 1)
    throw FieldError("n", fmt::format("a session allows one answer per turn, so n must be 1, not {}", form.answers));
  if (chat.ending == chat::Ending::continued)
    throw FieldError("continue_final_message",
                     "an answer in a session is a new message, so continue_final_message must not be true");
  if (chat.ending == chat::Ending::nothing)
    throw FieldError("add_generation_prompt", "a session needs an answer, so add_generation_prompt must not be false");
  const Role last = chat.messages.back().said.role;
  if (last != Role::user && last != Role::tool)
    throw FieldError("messages", "a turn of a session must end with a message of the user or a tool's result");
}

}  // namespace

struct Asking::Asked {
  Asked(const std::string& body, const Surface& of, const Asker& who, std::shared_ptr<Responder> responder,
        const AskingRoom& room)
      : share(std::make_shared<RequestShare>(room.memory)),
        json(parse_counted(body, *share)),
        fields(json),
        surface(of),
        asker(who),
        to(std::move(responder)),
        keeping(read_keeping(fields, room.options.defaults, asker.conversation)),
        request(of.read(fields, {*room.model, room.options.defaults, room.context})) {}

  std::shared_ptr<RequestShare> share;
  Json json;
  Fields fields;
  const Surface& surface;
  Asker asker;
  std::shared_ptr<Responder> to;
  Keeping keeping;
  AnswerRequest request;
  std::shared_ptr<ConversationTurn> turn;  ///< null: not part of a stored conversation
  std::vector<AskedMessage> said;          ///< in this turn
  Documents documents;                     ///< to ask
  chat::AnswerFormat format;               ///< of the answers to a conversation
};

void Asking::ask(const Surface& surface, const Asker& asker, const std::string& body,
                 const std::shared_ptr<Responder>& to) {
  const auto asked = std::make_shared<Asked>(body, surface, asker, to, room_);
  if (!asked->keeping.conversation && asked->keeping.documents.empty()) return go_on(*asked);
  room_.store_workers.post([this, asked] {
    room_.answer(*asked->to, asked->asker, [&] {
      try {
        open(*asked);
        go_on(*asked);
      } catch (...) {
        asked->turn.reset();  // the client may send the next turn when it gets the error
        throw;
      }
    });
  });
}

void Asking::open(Asked& asked) {
  const auto& keeping = asked.keeping;
  if (keeping.conversation) {
    if (asked.request.conversation() == nullptr)
      throw FieldError("winnow.session", "a session needs messages: use /v1/chat/completions");
    asked.turn = room_.conversations.begin({asked.asker.key, *keeping.conversation});
  }
  if (keeping.documents.empty()) return;
  check_question(asked.request);
  if (room_.shelf == nullptr) throw no_documents("winnow.documents");
  asked.documents = room_.shelf->use([&](DocumentStore& store) { return open_documents(store, keeping.documents); });
}

/// Opens each document once, even if it is named twice, and stops when the context is full.
Documents Asking::open_documents(DocumentStore& store, const std::vector<std::string>& names) const {
  Documents out;
  std::map<std::string_view, Documents::value_type> opened;
  std::size_t tokens = 0;
  for (const auto& name : names) {
    auto& document = opened[name];
    if (document == nullptr) document = store.open(name, *room_.model);
    tokens += as_size(document->tokens());
    check_context(tokens, room_.context, "winnow.documents");
    out.push_back(document);
  }
  return out;
}

void Asking::go_on(Asked& asked) {
  name_unknown(asked);
  auto stops = asked.request.generate.stop;
  auto prompts = tokens_of(asked);
  put_after_documents(asked, prompts);
  const int asked_tokens = asked.request.generate.max_tokens;
  limit_answers(asked, prompts);
  const auto& keeping = asked.keeping;
  AnswerPlan plan{.form = asked.request.form,
                  .head = {new_id(asked.surface.id_prefix), seconds_since_1970(), room_.model_name},
                  .cost = {},
                  .stops = std::move(stops),
                  .repeated = std::move(asked.request.repeated)};
  plan.cost.spec = asked.documents.empty() ? keeping.keep.spec.print() : keeping.ask.method.print();
  plan.cost.budget = keeping.keep.budget ? keeping.keep.budget->print() : "";
  plan.cost.asked_tokens = asked_tokens;
  plan.cost.context_tokens = plan.cost.max_tokens = asked.request.generate.max_tokens;
  const auto finished = finished_request(plan, asked.asker.key, prompts.front().prompt);
  std::vector<Request> requests;
  for (auto& prompt : prompts) {
    plan.prompt_tokens.push_back(static_cast<int>(prompt.size()));
    plan.cost.prompt_tokens += plan.prompt_tokens.back();
    if (plan.form.echo) plan.echoed.push_back(prompt.prompt.text);
    requests.push_back(request_for(asked, std::move(prompt)));
  }
  std::size_t bytes = bytes_of_repeated(plan.repeated);
  for (const auto& request : requests) bytes += bytes_of(request);
  asked.share->hold(bytes);
  asked.to = holding(asked.share, asked.to);
  const auto ticket = room_.engine.new_ticket();
  const auto listener = listener_of(asked, plan, ticket, finished);
  room_.engine.add(ticket, std::move(requests), plan.head.id, listener);
  asked.to->on_gone([&engine = room_.engine, ticket] { engine.cancel(ticket); });
}

std::vector<StagedPrompt> Asking::tokens_of(Asked& asked) const try {
  if (auto* const conversation = asked.request.conversation()) return {tokens_of(asked, *conversation)};
  return tokens_of(asked, std::get<PromptsRequest>(asked.request.asked));
} catch (PromptTooLong& error) {
  if (asked.request.form.stream) error.set_for_stream();
  throw;
}

StagedPrompt Asking::tokens_of(Asked& asked, AskedConversation& conversation) const {
  const Model& model = *room_.model;
  if (asked.turn) {
    auto& messages = conversation.messages;
    check_turn(conversation, asked.request.form);
    asked.said = messages;
    messages.insert(messages.begin(), asked.turn->before().begin(), asked.turn->before().end());
  }
  const std::size_t size = conversation.size();
  check_context(model, size, room_.context, conversation.field);
  asked.share->also_hold(bytes_of_tokenizing(size));
  auto [text, prompt, format, left_out] = write(model, conversation, room_.options.defaults.control);
  check_context(prompt.size(), room_.context, conversation.field);
  asked.request.generate.thinking.most_tokens = conversation.thinking.budget;
  demand(format, model, asked.request.generate);
  if (conversation.thinking.budget && format.thinking_start.empty())
    room_.unknown.say("the model's chat template has no thinking, so a limit of its tokens has no effect");
  name_left_out(left_out);
  asked.format = std::move(format);
  return std::move(prompt);
}

std::vector<StagedPrompt> Asking::tokens_of(Asked& asked, const PromptsRequest& request) const {
  const std::size_t longest = longest_text(request.prompts);
  check_context(*room_.model, longest, room_.context, "prompt");
  asked.share->also_hold(bytes_of_tokenizing(longest));
  if (!request.format.schema.empty()) {
    auto [grammar, left_out] = chat::grammar_of(request.format.schema);
    asked.request.generate.grammar = std::move(grammar);
    name_left_out(left_out);
  }
  std::vector<StagedPrompt> out;
  for (const auto& prompt : request.prompts) {
    out.push_back({{tokens_of_prompt(*room_.model, prompt), {}}});
    check_context(out.back().size(), room_.context, "prompt");
  }
  return out;
}

void Asking::put_after_documents(Asked& asked, std::vector<StagedPrompt>& prompts) const {
  if (asked.documents.empty()) return;
  for (auto& prompt : prompts) {
    prompt = {after_documents(*room_.model, asked.documents, std::move(prompt.prompt), asked.request)};
    check_context(prompt.size(), room_.context, "winnow.documents");
  }
}

void Asking::limit_answers(Asked& asked, const std::vector<StagedPrompt>& prompts) const {
  auto& generate = asked.request.generate;
  for (const auto& prompt : prompts)
    generate.max_tokens = std::min(generate.max_tokens, room_.context - static_cast<int>(prompt.size()));
  generate.min_tokens = std::min(generate.min_tokens, generate.max_tokens);
  if (asked.turn && generate.max_tokens == 0)
    throw FieldError("messages", fmt::format("the session has no room for an answer: it fills the context of {} tokens",
                                             room_.context));
}

Request Asking::request_for(const Asked& asked, StagedPrompt prompt) const {
  const auto& form = asked.request.form;
  Request out;
  if (asked.documents.empty()) {
    out = request_of(std::move(prompt.prompt), asked.keeping.protocol);
    if (form.echo && form.alternatives) out.text().prompt_logprobs = std::max(1, *form.alternatives);
    if (form.cache_prompt) out.text().cache_salt = shared_by(form, asked.asker);
    if (!out.question.empty()) out.text().stages = std::move(prompt.stages);
  } else {
    out.source = std::make_shared<AskingSource>(asked.documents, room_.shelf->place(),
                                                std::move(prompt.prompt.question), asked.keeping.ask);
  }
  out.keep = asked.keeping.keep;
  out.generate = asked.request.generate;
  out.answers = form.answers;
  out.key = asked.asker.key;
  out.priority = form.priority;
  if (asked.documents.empty()) raise_share(out);
  return out;
}

std::shared_ptr<AnswerListener> Asking::listener_of(Asked& asked, const AnswerPlan& plan, EngineThread::Ticket ticket,
                                                    const std::shared_ptr<FinishedRequest>& finished) {
  const auto& asker = asked.asker;
  const auto writer = asked.surface.writer(room_.model, plan, asked.to);
  asked.to->on_silence([weak = std::weak_ptr(writer)] {
    if (const auto still = weak.lock()) still->goes_on();
  });
  const auto answering = std::make_shared<Answering>(
      room_.model, plan,
      [&format = asked.format] { return format.parser == nullptr ? text_reader() : format_reader(format); }, writer);
  answering->on_failure([&engine = room_.engine, ticket] { engine.cancel(ticket); });
  answering->on_finish([this, finished](std::shared_ptr<const KeptPositions> kept) {
    finished->kept = std::move(kept);
    room_.finished.put(std::move(*finished));
  });
  std::shared_ptr<AnswerListener> listener = std::make_shared<Observed>(
      answering, room_.observers,
      RequestRecord{.path = asker.path, .id = plan.head.id, .key = asker.key_name, .cost = plan.cost}, asker.arrived,
      plan.prompt_tokens, plan.form.answers);
  if (!asked.turn) return listener;
  return std::make_shared<ConversationAnswer>(std::move(listener), std::move(asked.turn), std::move(asked.said),
                                              std::move(asked.format), room_.store_workers, room_.to_http);
}

void Asking::name_left_out(const std::set<std::string>& keywords) const {
  for (const auto& keyword : keywords)
    room_.unknown.say(fmt::format("the keyword {} of JSON schemas is not enforced", brief(keyword)));
}

void Asking::name_unknown(const Asked& asked) {
  room_.unknown.name(asked.fields);
  if (const auto* const conversation = asked.request.conversation())
    for (const auto& sentence : conversation->left_out) room_.unknown.say(sentence);
}

}  // namespace winnow::server
