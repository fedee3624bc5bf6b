// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <CLI/CLI.hpp>

namespace winnow::cli {

inline constexpr const char* kWords = "A,B,...";
inline constexpr const char* kNumbers = "N,N,...";

/// Makes an option a list in a single word, so that the next word may be an argument. --help shows it as `form`.
inline CLI::Option* as_list(CLI::Option* option, const char* form) {
  return option->allow_extra_args(false)->option_text(form);
}

/// The same for a list whose items contain no commas.
inline CLI::Option* as_split_list(CLI::Option* option, const char* form) {
  return as_list(option->delimiter(','), form);
}

}  // namespace winnow::cli
