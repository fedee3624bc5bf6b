// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/policy/options.h"

/// What all specs have in common: a name, then `:key=value,…`.
namespace winnow::policy {

/// Options as they were typed, on top of the defaults.
struct Given {
  Options values;
  std::set<std::string> keys;  ///< those that were typed
};

/// ":key=value,…" of all options, in declared order; empty where there are none.
std::string print_all(const Options& values, const std::vector<Option>& declared);
/// The same of those that differ from their default.
std::string print_changed(const Options& values, const std::vector<Option>& declared);

/// The specs of a list: a comma outside brackets starts a new one unless `key=` follows it.
std::vector<std::string_view> split_list(std::string_view text);

/// Reads a spec from left to right. All throw UsageError, with the place where the spec is wrong.
class SpecReader {
 public:
  explicit SpecReader(std::string_view text);

  std::string name();
  /// `:key=value,…` or nothing.
  Given options(const std::string& owner, const std::vector<Option>& declared);
  /// Reads a character if it is the next one.
  bool take(char c);
  /// Refuses what has not been read.
  void end() const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view word(const char* what);
  void option(const std::string& owner, const std::vector<Option>& declared, Given& given);
  /// A comma goes on with this spec's options when `key=` follows it; else it is a list's.
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

/// The thing of that name; where there is none, as above.
template <class T>
const T& find_named(const std::vector<T>& things, const std::string& name, std::string_view what) {
  for (const auto& thing : things) {
    if (thing.name == name) return thing;
  }
  refuse_unknown(what, name, names_of(things));
}

}  // namespace winnow::policy
