// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace winnow::chat {

/// Calls `run`, which runs a template, within bounds: files are not trusted. Throws TemplateError where the template
/// takes too many steps, makes too many bytes or nests too deeply, and where `run` throws: the template called `name`
/// cannot be `done`. `input` is the number of bytes that the template is given.
void bounded(const std::string& name, const char* done, std::size_t input, const std::function<void()>& run);

/// Refuses a text of JSON that nests too deeply for a thread's stack. Throws TemplateError, which begins with `name`.
void check_json_nesting(const std::string& name, const std::string& text);

}  // namespace winnow::chat
