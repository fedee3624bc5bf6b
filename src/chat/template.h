// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "chat/answer_format.h"
#include "model/marked_text.h"
#include "winnow/conversation.h"
#include "winnow/error.h"

namespace winnow::chat {

/// A template that cannot be parsed or run, or that refuses the messages.
class TemplateError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A function that a model may call.
struct Tool {
  std::string name;
  std::string description;
  std::string parameters;  ///< a JSON Schema
};

enum class ToolChoice : std::uint8_t { automatic, required, none };

/// The part after the messages: an answer that the template opens, nothing, or the rest of the last message.
enum class Ending : std::uint8_t { answer, nothing, continued };

/// Whether the model thinks before it answers, where its template has a choice.
enum class Thinking : std::uint8_t { on, off };

/// Whether an answer may have several calls.
enum class Calls : std::uint8_t { one, parallel };

/// Where the model's thinking goes when an answer is read.
enum class Reasoning : std::uint8_t { apart, in_content };

/// Sources of a model's chat templates in Jinja.
struct TemplateSources {
  std::string usual;
  std::string tool_use = {};  ///< for requests with tools; empty: the usual one
};

/// Values that a template is run with.
struct Input {
  std::span<const Message> messages;
  std::span<const Tool> tools;
  ToolChoice tool_choice = ToolChoice::automatic;
  Ending ending = Ending::answer;
  Thinking thinking = Thinking::on;
  std::map<std::string, std::string> variables = {};  ///< JSON values by the names that the template knows
  Calls calls = Calls::parallel;
  Reasoning reasoning = Reasoning::apart;
  std::string schema = {};  ///< JSON Schema of an answer that is no call; empty: it is free
};

/// The text that a template has written.
struct Rendering {
  model::MarkedText text;
  std::vector<std::size_t> messages;  ///< byte at which the content of each message begins in the text; kNowhere: empty
  AnswerFormat answer;                ///< to this prompt
  std::set<std::string> left_out;     ///< keywords of schemas that the answer's grammar does not enforce
};

/// A chat template in Jinja, run by llama.cpp's library. Tools that it does not tell, or refuses, are told as texts.
/// Immutable, shared by threads.
class Template {
 public:
  /// `name` says in errors whose template it is. Throws TemplateError.
  Template(std::string name, const TemplateSources& sources, const std::string& bos, const std::string& eos);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// Throws TemplateError where the template refuses the messages, leaves one of them out, or takes too long.
  Rendering render(const Input& input) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::chat
