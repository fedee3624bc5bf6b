// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace winnow::chat {

/// Rejects templates, which come from untrusted files, if parsing or running them would nest too deeply for a thread's
/// stack. The longest of llama.cpp's own templates has less than a tenth of the limits. Throws TemplateError, which
/// begins with `name`.
void check_nesting(const std::string& name, const std::string& source);

}  // namespace winnow::chat
