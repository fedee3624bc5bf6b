// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chat.h>

#include <cstdint>
#include <map>
#include <string>

#include "chat/plain_tools.h"

namespace winnow::chat {

/// Format of a template's calls: its own, if it also renders tools, or that of tools as text.
enum class Format : std::uint8_t { none, own, plain };

/// A parsed template.
struct Source {
  common_chat_templates_ptr templates;
  std::map<std::string, std::string> without_tools;  ///< variables for requests without tools
  Format calls = Format::none;
};

/// Throws whatever llama.cpp's library throws.
Source read_source(const std::string& source, const std::string& bos, const std::string& eos);

/// True if the template renders tools, and calls can be requested and parsed. Some templates support only one of both.
bool has_calls(const common_chat_templates* templates);

Taken taken_by(const Source& source);

/// Runs the template. If llama.cpp's format for it lacks calls or schemas, sets the format of tools as text, or of the
/// schema.
common_chat_params applied(const Source& source, const common_chat_templates_inputs& inputs);

/// Answers with a schema to a prompt with tools, whose calls have the parameters `of_calls`: in the template's format
/// without tools.
common_chat_params applied_without_tools(const Source& source, common_chat_templates_inputs inputs,
                                         const common_chat_params& of_calls);

}  // namespace winnow::chat
