// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/export.h"
#include "winnow/methods.h"
#include "winnow/questions.h"
#include "winnow/session.h"
#include "winnow/spec.h"

namespace winnow {

/// The text that stands for the recommended method: `--kv auto`.
inline constexpr std::string_view kAuto = "auto";

/// The method that docs/results.md recommends for one question about a text (aware), or for questions that come later
/// (agnostic). It needs a budget. It does not change within a minor version.
WINNOW_EXPORT Spec recommended(Protocol protocol);

/// `auto` as list_methods() describes the others. Its parts are the specs that it stands for, by protocol.
WINNOW_EXPORT MethodInfo describe_recommended();

/// The recommended method for `auto`, else what Spec::parse() reads. Throws what that throws.
WINNOW_EXPORT Spec spec_for(std::string_view text, Protocol protocol);

/// `auto`, or `auto (question-agnostic)`, for what recommended() returns, whose spec is too long for a table; else the
/// spec.
WINNOW_EXPORT std::string method_label(const std::string& spec);

/// A footnote for each of these specs that has another label; empty: none has.
WINNOW_EXPORT std::string label_notes(const std::vector<std::string>& specs);

/// Cache options before the protocol is known, with which `auto` stands for one method or another.
struct WINNOW_EXPORT CacheChoice {
  std::optional<Spec> spec = Spec();  ///< none: auto
  std::optional<Budget> budget = {};
  KvType kv_type = {};

  /// Reads a spec or `auto`. Without one, a budget makes it `auto`, since full keeps everything, and no budget makes it
  /// full. Throws UsageError, also when these do not go together.
  static CacheChoice parse(std::optional<std::string_view> kv, std::optional<Budget> budget, const KvType& kv_type);

  /// Takes the place of the method. Throws UsageError for what is no spec.
  void name_method(std::string_view kv);
  CacheOptions with(Protocol protocol) const;
  /// The spec in canonical form, or `auto`.
  std::string method_name() const;
};

}  // namespace winnow
