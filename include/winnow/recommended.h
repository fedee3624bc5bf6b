// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "winnow/export.h"
#include "winnow/methods.h"
#include "winnow/questions.h"
#include "winnow/session.h"
#include "winnow/spec.h"

namespace winnow {

/// The methods that docs/results.md recommends. They need a budget, and do not change within a minor version.
enum class Recommended : std::uint8_t {
  best,  ///< `auto`: comes closest to the full cache; reads a prompt two to four times
  fast,  ///< `auto:fast`: the best of those that read a prompt once
};
inline constexpr std::array kRecommended{Recommended::best, Recommended::fast};

/// Name of the first one: `--kv auto`.
inline constexpr std::string_view kAuto = "auto";
constexpr std::string_view name_of(Recommended which) { return which == Recommended::best ? kAuto : "auto:fast"; }
/// The one with this name; nullopt if none has it.
WINNOW_EXPORT std::optional<Recommended> recommended_by_name(std::string_view name);

/// The method for one question about a text (aware), or for later questions (agnostic).
WINNOW_EXPORT Spec recommended(Protocol protocol, Recommended which = Recommended::best);

/// The type of kept entries that docs/results.md recommends: q8_0 if a budget in bytes limits their number, because
/// more entries are then worth more than exact ones; else f16.
WINNOW_EXPORT KvType recommended_type(const Spec& spec, const std::optional<Budget>& budget);

/// Describes the recommended methods as list_methods() describes others. Their parts are the specs that they stand for,
/// by protocol.
WINNOW_EXPORT std::vector<MethodInfo> describe_recommended();

/// The recommended method with this name, else Spec::parse(text). Throws whatever Spec::parse() throws.
WINNOW_EXPORT Spec spec_for(std::string_view text, Protocol protocol);

/// A name such as `auto` or `auto (question-agnostic)` for the specs of recommended(), which are too long for tables;
/// any other spec unchanged.
WINNOW_EXPORT std::string method_label(const std::string& spec);

/// Footnotes that give the specs behind shortened labels; empty if no label is shortened.
WINNOW_EXPORT std::string label_notes(const std::vector<std::string>& specs);

/// Cache options before the protocol is known, which decides what `auto` stands for.
struct WINNOW_EXPORT CacheChoice {
  std::variant<Spec, Recommended> method = Spec();
  std::optional<Budget> budget = {};
  std::optional<KvType> kv_type = {};  ///< empty: recommended_type()

  /// Parses a spec or `auto`. Without `kv`, a budget selects `auto`, and no budget selects full. An empty `kv_type` is
  /// the recommended one. Throws UsageError, also if the arguments contradict each other.
  static CacheChoice parse(std::optional<std::string_view> kv, std::optional<Budget> budget,
                           std::optional<std::string_view> kv_type = {});

  /// Replaces the method. Throws UsageError for an invalid spec.
  void name_method(std::string_view kv);
  CacheOptions with(Protocol protocol) const;
  /// The spec in canonical form, or the name of a recommended method.
  std::string method_name() const;
};

}  // namespace winnow
