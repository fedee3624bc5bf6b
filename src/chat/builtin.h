// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "chat/template.h"

namespace winnow::chat {

/// Jinja of a template that libllama knows by name, learnt from what libllama writes by it; empty: it knows none.
std::string builtin_source(const std::string& name);

/// A template to run, and why it is not the file's own.
struct Opened {
  Template chat_template;
  std::string notice;  ///< for the log; empty: it is the file's own, or the one that the file names
};

/// A file's template: in Jinja or the name of a built-in one. Without one, or where it cannot be read or run, the
/// built-in one whose control tokens the vocabulary has: `has_token` tells. One for requests with tools that cannot be
/// read is left out. `name` is the file's.
Opened open_template(const std::string& name, const TemplateSources& sources, const std::string& bos,
                     const std::string& eos, const std::function<bool(const std::string&)>& has_token);

}  // namespace winnow::chat
