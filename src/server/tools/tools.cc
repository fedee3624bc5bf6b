// SPDX-License-Identifier: Apache-2.0
#include "server/tools/tools.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/printable.h"
#include "server/openai/errors.h"
#include "server/schema/compiler.h"
#include "server/schema/in_order.h"

namespace winnow::server {

namespace {

constexpr const char* kTools = "tools";
constexpr const char* kChoice = "tool_choice";
constexpr int kMostCalls = 16;  // of an answer

/// What is not a call must not look like one, and begins at once.
constexpr const char* kText = R"(([^{ \t\r\n] [\u0001-\uD7FF\uE000-\uFFFF\U00010000-\U0010FFFF]*)?)";

void check_type(Fields& fields) {
  if (fields.text("type").value_or("function") != "function")
    throw FieldError(fields.path("type"), fields.path("type") + " must be function");
}

std::string name_in(Fields& function) {
  const auto name = function.text("name");
  const auto is_fit = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  if (!name || name->empty() || name->size() > 64 || !std::ranges::all_of(*name, is_fit))
    throw FieldError(function.path("name"),
                     function.path("name") + " must have 1 to 64 letters, digits, underscores, dashes or points");
  return *name;
}

Tool read_tool(const RequestJson& value, const Json& ordered, const std::string& path) {
  Fields fields(object_at(value, path), path + ".");
  check_type(fields);
  Fields function(fields.required_object("function"), path + ".function.");
  Tool out{name_in(function), function.path("parameters"), {}};
  out.definition = {{"name", out.name}};
  if (const auto about = function.text("description")) out.definition["description"] = *about;
  const bool has_parameters = function.object("parameters") != nullptr;
  out.definition["parameters"] = has_parameters ? ordered.at("function").at("parameters") : Json{{"type", "object"}};
  return out;
}

std::vector<Tool> read_list(const RequestJson& list, const Json& ordered) {
  std::vector<Tool> out;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string path = fmt::format("tools[{}]", i);
    out.push_back(read_tool(list[i], ordered.at(i), path));
    const auto is_same = [&out](const Tool& other) { return other.name == out.back().name; };
    if (std::ranges::count_if(out, is_same) > 1)
      throw FieldError(path + ".function.name", fmt::format("{}.function.name is {} again", path, out.back().name));
  }
  return out;
}

/// Leaves the tool that must be called, once: who names a function asks for one call.
void choose(Tools& tools, const RequestJson& choice) {
  Fields fields(choice, "tool_choice.");
  check_type(fields);
  Fields function(fields.required_object("function"), "tool_choice.function.");
  const std::string name = name_in(function);
  std::erase_if(tools.list, [&name](const Tool& tool) { return tool.name != name; });
  if (tools.list.empty())
    throw FieldError(function.path("name"),
                     fmt::format("{} is {}, which is not in tools", function.path("name"), name));
  tools.must_call = true;
  tools.may_call_several = false;
}

}  // namespace

Tools read_tools(Fields& fields, const RequestJson& request, const std::string& body) {
  Tools out;
  const RequestJson* const list = fields.list(kTools);
  const RequestJson* const choice = fields.any(kChoice);
  out.may_call_several = fields.boolean("parallel_tool_calls").value_or(true);
  const bool has_tools = list != nullptr && !list->empty();
  if (has_tools) out.list = read_list(*list, fields_in_order(body, request, {kTools}).at(kTools));
  if (choice == nullptr) return out;
  if (choice->is_object()) {
    choose(out, *choice);
    return out;
  }
  const auto word = fields.word(kChoice, {"none", "auto", "required"});
  out.must_call = word == "required";
  if (out.must_call && !has_tools) throw FieldError(kChoice, "tool_choice is required, and there are no tools");
  if (word == "none") out.list.clear();
  return out;
}

std::string instructions_of(const Tools& tools) {
  std::string out = "You can call these functions:\n";
  for (const auto& tool : tools.list) out += text_of(tool.definition) + "\n";
  out +=
      "To call a function, answer with one line of JSON and nothing else: "
      "{\"name\": \"the function's name\", \"arguments\": {its arguments}}";
  if (tools.may_call_several) out += "\nTo call several, write a line for each.";
  if (!tools.must_call) out += "\nIf no call is needed, answer in plain text.";
  return out;
}

std::string grammar_of_tools(const Tools& tools) {
  SchemaCompiler compiler(kTools);
  std::vector<std::string> calls;
  for (const auto& tool : tools.list) {
    const std::string arguments = compiler.add(tool.definition.at("parameters"), tool.path);
    calls.push_back(
        fmt::format(R"({} ws {} ws "}}")", literal(fmt::format(R"("{}", "arguments":)", tool.name)), arguments));
  }
  Rules& rules = compiler.rules();
  rules.define("call", fmt::format(R"("{{" ws "\"name\": " ({}))", fmt::join(calls, " | ")));
  rules.define("calls", tools.may_call_several ? fmt::format(R"(call ("\n" call){{0,{}}})", kMostCalls - 1) : "call");
  rules.define("root", tools.must_call ? "calls" : fmt::format("calls | {}", kText));
  return compiler.finish();
}

}  // namespace winnow::server
