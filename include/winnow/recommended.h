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

/// Name of the recommended method: `--kv auto`.
inline constexpr std::string_view kAuto = "auto";

/// The method that docs/results.md recommends for one question about a text (aware), or for later questions (agnostic).
/// It needs a budget. It does not change within a minor version.
WINNOW_EXPORT Spec recommended(Protocol protocol);

/// The type of kept entries that docs/results.md recommends: q8_0 if a budget in bytes limits their number, because
/// more entries are then worth more than exact ones; else f16.
WINNOW_EXPORT KvType recommended_type(const Spec& spec, const std::optional<Budget>& budget);

/// Describes `auto` as list_methods() describes other methods. Its parts are the specs it stands for, by protocol.
WINNOW_EXPORT MethodInfo describe_recommended();

/// The recommended method for `auto`, else Spec::parse(text). Throws whatever Spec::parse() throws.
WINNOW_EXPORT Spec spec_for(std::string_view text, Protocol protocol);

/// `auto` or `auto (question-agnostic)` for the specs of recommended(), which are too long for tables; any other spec
/// unchanged.
WINNOW_EXPORT std::string method_label(const std::string& spec);

/// Footnotes that give the specs behind shortened labels; empty if no label is shortened.
WINNOW_EXPORT std::string label_notes(const std::vector<std::string>& specs);

/// Cache options before the protocol is known, which decides which method `auto` is.
struct WINNOW_EXPORT CacheChoice {
  std::optional<Spec> spec = Spec();  ///< empty: auto
  std::optional<Budget> budget = {};
  std::optional<KvType> kv_type = {};  ///< empty: recommended_type()

  /// Parses a spec or `auto`. Without `kv`, a budget selects `auto`, and no budget selects full. An empty `kv_type` is
  /// the recommended one. Throws UsageError, also if the arguments contradict each other.
  static CacheChoice parse(std::optional<std::string_view> kv, std::optional<Budget> budget,
                           std::optional<std::string_view> kv_type = {});

  /// Replaces the method. Throws UsageError for an invalid spec.
  void name_method(std::string_view kv);
  CacheOptions with(Protocol protocol) const;
  /// The spec in canonical form, or `auto`.
  std::string method_name() const;
};

}  // namespace winnow
