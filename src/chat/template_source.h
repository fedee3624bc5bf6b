// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chat.h>

#include <cstdint>
#include <map>
#include <string>

#include "chat/plain_tools.h"

namespace winnow::chat {

/// The format of a template's calls: its own, if it also tells tools, or that of tools as texts.
enum class Format : std::uint8_t { none, own, plain };

/// A template that has been read.
struct Source {
  common_chat_templates_ptr templates;
  std::map<std::string, std::string> without_tools;  ///< variables that it is run with where there are no tools
  Format calls = Format::none;
};

/// Throws what llama.cpp's library does.
Source read_source(const std::string& source, const std::string& bos, const std::string& eos);

/// Whether tools are told, and calls of them can be asked for and read. Some templates do one of both only.
bool has_calls(const common_chat_templates* templates);

Taken taken_by(const Source& source);

/// Runs it, and makes its calls those that are told as texts, or the answer be of a schema, where llama.cpp's format
/// for the template has none of it.
common_chat_params applied(const Source& source, const common_chat_templates_inputs& inputs);

/// An answer of a schema to a prompt with tools, whose calls have these parameters: as the template has it without
/// tools.
common_chat_params applied_without_tools(const Source& source, common_chat_templates_inputs inputs,
                                         const common_chat_params& of_calls);

}  // namespace winnow::chat
