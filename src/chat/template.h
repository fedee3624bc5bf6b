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

/// A template that cannot be parsed or run, or that rejects the messages.
class TemplateError : public UsageError {
 public:
  using UsageError::UsageError;
};

/// A function that a model can call.
struct Tool {
  std::string name;
  std::string description;
  std::string parameters;  ///< JSON Schema
};

enum class ToolChoice : std::uint8_t { automatic, required, none };

/// The end of the prompt: the beginning of an answer, nothing after the messages, or the last message to be continued.
enum class Ending : std::uint8_t { answer, nothing, continued };

/// Whether the model thinks before it answers, if its template supports both.
enum class Thinking : std::uint8_t { on, off };

/// Number of calls in an answer.
enum class Calls : std::uint8_t { one, parallel };

/// Place of the model's thinking in a parsed answer.
enum class Reasoning : std::uint8_t { apart, in_content };

/// Sources of a model's Jinja chat templates.
struct TemplateSources {
  std::string usual;
  std::string tool_use = {};  ///< for requests with tools; empty: the usual one
};

/// Arguments of a template.
struct Input {
  std::span<const Message> messages;
  std::span<const Tool> tools;
  ToolChoice tool_choice = ToolChoice::automatic;
  Ending ending = Ending::answer;
  Thinking thinking = Thinking::on;
  std::map<std::string, std::string> variables = {};  ///< JSON values by the template's variable names
  Calls calls = Calls::parallel;
  Reasoning reasoning = Reasoning::apart;
  std::string schema = {};  ///< JSON Schema of an answer without calls; empty: any text
};

/// Output of a template.
struct Rendering {
  model::MarkedText text;
  std::vector<std::size_t> messages;  ///< byte of the text at which the content of each message begins; kNowhere: empty
  AnswerFormat answer;                ///< format of answers to this prompt
  std::set<std::string> left_out;     ///< keywords of schemas that the answer's grammar does not enforce
};

/// A Jinja chat template, run by llama.cpp's library. Tools that it does not support are rendered as text. Immutable,
/// thread-safe.
class Template {
 public:
  /// `name`: the template's name in errors. Throws TemplateError.
  Template(std::string name, const TemplateSources& sources, const std::string& bos, const std::string& eos);
  Template(Template&&) noexcept;
  Template& operator=(Template&&) noexcept;
  ~Template();

  /// Throws TemplateError if the template rejects the messages, omits one, or takes too long.
  Rendering render(const Input& input) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace winnow::chat
