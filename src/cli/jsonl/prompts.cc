// SPDX-License-Identifier: Apache-2.0
#include "cli/jsonl/prompts.h"

#include <spdlog/fmt/fmt.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "cli/commands.h"

namespace winnow::cli {

namespace {

using PromptJson = nlohmann::json;  // ordered_json copies its values when it grows

constexpr std::size_t kPromptLevels = 1;  ///< a prompt's members are texts and an id

/// Moves a text, which may be long, out of a line's value.
std::string take_text(PromptJson& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) return {};
  if (!found->is_string()) throw JsonError(fmt::format("{} is not a string", key));
  return std::move(found->get_ref<std::string&>());
}

JsonlPrompt prompt_of(PromptJson line, int number, const PromptText& defaults) {
  if (!line.is_object()) throw JsonError("not a JSON object");
  JsonlPrompt out{std::to_string(number), defaults};
  if (line.contains("id")) out.id = line["id"].is_string() ? line["id"].get<std::string>() : line["id"].dump();
  out.prompt.text = take_text(line, "text");
  out.prompt.question = take_text(line, line.contains("question") ? "question" : "prompt");
  if (out.prompt.text.empty() && out.prompt.question.empty()) throw JsonError("it has neither text nor question");
  return out;
}

}  // namespace

JsonlPrompts::JsonlPrompts(const std::string& path, PromptText defaults)
    : defaults_(std::move(defaults)), lines_(TextInput(path, interrupted)) {}

std::optional<JsonlPrompt> JsonlPrompts::next() {
  if (!lines_.next()) return {};
  try {
    return prompt_of(parse_json<PromptJson>(lines_, {.kept = kPromptLevels}), lines_.number(), defaults_);
  } catch (const JsonError& error) {
    throw BadLine(fmt::format("{} line {}: {}", lines_.input().name(), lines_.number(), error.what()));
  }
}

}  // namespace winnow::cli
