// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::chat {

/// Refuses a template whose parsing or running would nest too deeply for a thread's stack: files are not trusted. The
/// longest of llama.cpp's own templates has less than a tenth of what passes. Throws TemplateError, which begins with
/// `name`.
void check_nesting(const std::string& name, const std::string& source);

}  // namespace winnow::chat
