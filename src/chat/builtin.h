// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "chat/template.h"

namespace winnow::chat {

/// Jinja source of a template that libllama knows by name, derived from libllama's output; empty: unknown.
std::string builtin_source(const std::string& name);

/// An opened template, and the reason if it is not the file's own.
struct Opened {
  Template chat_template;
  std::string notice;  ///< for the log; empty: the file's own template, or the one that the file names
};

/// A file's template: in Jinja, or the name of a built-in one. If it is missing or cannot be read or run, the built-in
/// one whose control tokens are in the vocabulary, as told by `has_token`. A template for requests with tools that
/// cannot be read is ignored. `name`: the file's name.
Opened open_template(const std::string& name, const TemplateSources& sources, const std::string& bos,
                     const std::string& eos, const std::function<bool(const std::string&)>& has_token);

}  // namespace winnow::chat
