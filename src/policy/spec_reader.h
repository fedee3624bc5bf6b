// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/policy/options.h"

/// Syntax common to all specs: a name, then `:key=value,…`.
namespace winnow::policy {

/// Typed options on top of the defaults.
struct Given {
  Options values;
  std::set<std::string> keys;  ///< keys that were typed
};

/// ":key=value,…" of all options, in declared order; empty if there are none.
std::string print_all(const Options& values, const std::vector<Option>& declared);
/// The same for the options that differ from their defaults.
std::string print_changed(const Options& values, const std::vector<Option>& declared);

/// Splits a list of specs: a comma outside brackets starts a new spec unless `key=` follows it.
std::vector<std::string_view> split_list(std::string_view text);

/// Parses a spec from left to right. All functions throw UsageError with the place of the mistake.
class SpecReader {
 public:
  explicit SpecReader(std::string_view text);

  std::string name();
  /// Parses `:key=value,…` or nothing.
  Given options(const std::string& owner, const std::vector<Option>& declared);
  /// Consumes a character if it is the next one.
  bool take(char c);
  /// Throws if any text is left.
  void end() const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view word(const char* what);
  void option(const std::string& owner, const std::vector<Option>& declared, Given& given);
  /// True if another option follows. A comma continues this spec's options if `key=` follows it; otherwise it separates
  /// specs of a list.
  bool another_option();

  std::string_view text_;
  std::size_t at_ = 0;
};

template <class T>
std::vector<std::string> names_of(const std::vector<T>& things) {
  std::vector<std::string> out;
  for (const auto& thing : things) out.push_back(thing.name);
  return out;
}

/// Throws UsageError: `unknown WHAT 'NAME'`, the nearest of the known names, and all of them.
[[noreturn]] void refuse_unknown(std::string_view what, std::string_view name, const std::vector<std::string>& known);

/// The element of that name. Throws like refuse_unknown() if there is none.
template <class T>
const T& find_named(const std::vector<T>& things, const std::string& name, std::string_view what) {
  for (const auto& thing : things) {
    if (thing.name == name) return thing;
  }
  refuse_unknown(what, name, names_of(things));
}

}  // namespace winnow::policy
