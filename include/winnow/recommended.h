// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "winnow/export.h"
#include "winnow/questions.h"
#include "winnow/spec.h"

namespace winnow {

/// The text that stands for the recommended method: `--kv auto`.
inline constexpr std::string_view kAuto = "auto";

/// The method that docs/results.md recommends for one question about a text (aware), or for questions that come later
/// (agnostic). It needs a budget. It does not change within a minor version.
WINNOW_EXPORT Spec recommended(Protocol protocol);

/// The recommended method for `auto`, else what Spec::parse() reads. Throws what that throws.
WINNOW_EXPORT Spec spec_for(std::string_view text, Protocol protocol);

}  // namespace winnow
