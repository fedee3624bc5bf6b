// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace winnow::chat {

/// Calls `run`, which runs a template or reads a schema, within bounds: files and clients are not trusted. `subject`
/// and `task` say in errors what cannot be done: "a.gguf: the chat template", "be read". Throws TemplateError where it
/// takes too many steps, makes too many bytes or nests too deeply, and where `run` throws. `input` is the number of
/// bytes that it is given.
void bounded(const std::string& subject, const char* task, std::size_t input, const std::function<void()>& run);

/// Refuses a text of JSON that nests too deeply for a thread's stack, or that has very large objects: llama.cpp's JSON
/// looks for a member at all of them. Throws TemplateError, which begins with `name`.
void check_json(const std::string& name, const std::string& text);

}  // namespace winnow::chat
