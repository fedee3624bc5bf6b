// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "server/openai/answer.h"
#include "server/openai/fields.h"

namespace winnow::server {

/// A function that a model may call.
struct Tool {
  std::string name;
  std::string path;  ///< of its parameters, in errors
  Json definition;   ///< name, description and parameters, as the model reads them
};

/// Those of a request. They are written into the system message, whatever the model's template has for tools.
struct Tools {
  std::vector<Tool> list;  ///< that may be called; empty: there are none
  bool must_call = false;  ///< an answer is nothing but calls
  bool may_call_several = true;
};

/// Reads `tools`, `tool_choice` and `parallel_tool_calls`. `body` is the request as it came, which has the order of
/// parameters. Throws ApiError.
Tools read_tools(Fields& fields, const RequestJson& request, const std::string& body);

/// What the model is told.
std::string instructions_of(const Tools& tools);

/// The grammar (GBNF) of an answer: calls, each a line of JSON with name and arguments, or a text that begins
/// otherwise. Throws FieldError where parameters cannot be kept to.
std::string grammar_of_tools(const Tools& tools);

}  // namespace winnow::server
