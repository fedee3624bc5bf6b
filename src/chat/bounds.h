// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace winnow::chat {

/// Calls `run`, which runs a template or reads a schema from an untrusted file or client, with limits. `input`: number
/// of bytes of its input. `subject` and `task` name what failed: "a.gguf: the chat template", "be read". Throws
/// TemplateError if it takes too many steps, makes too many bytes or nests too deeply, and if `run` throws.
void bounded(const std::string& subject, const char* task, std::size_t input, const std::function<void()>& run);

/// Rejects JSON text that nests too deeply for a thread's stack, or has very large objects, in which llama.cpp's JSON
/// searches members linearly. Throws TemplateError, which begins with `name`.
void check_json(const std::string& name, const std::string& text);

}  // namespace winnow::chat
