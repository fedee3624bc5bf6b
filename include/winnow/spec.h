// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "winnow/export.h"

namespace winnow {

namespace policy {
struct Method;
struct Registry;
}  // namespace policy

/// A KV-cache method with its options, parsed from a string such as `snapkv:window=16` or `ada(snapkv):floor=0.2`. A
/// value: cheap to copy, immutable, safe to share between threads.
class WINNOW_EXPORT Spec {
 public:
  /// `full`.
  Spec();

  /// Parses one spec. Throws UsageError; for an unknown method or option it names the nearest one and lists all, for an
  /// impossible combination it gives the reason. Independent of any model.
  static Spec parse(std::string_view text);
  /// Parses with a registry other than registered().
  static Spec parse(std::string_view text, const policy::Registry& registry);
  /// The same for endless texts: a method that evicts at every step gets positions=cache unless the text says
  /// otherwise.
  static Spec parse_endless(std::string_view text);
  /// Parses a list: a comma outside brackets begins a new spec unless `key=` follows.
  static std::vector<Spec> parse_list(std::string_view text);

  /// Canonical form: the preset as typed, and the options that differ from their defaults, in declared order.
  /// parse(print(s)) = s.
  std::string print() const;
  /// Canonical form with every option written out.
  std::string print_full() const;

  bool operator==(const Spec& other) const { return print() == other.print(); }

  const policy::Method& method() const { return *method_; }
  /// Spec of the method that drafts for this one (policy::Draft). REQUIRES: the method has a draft.
  Spec drafter() const;

 private:
  Spec(policy::Method method, std::string canonical, std::string full);

  std::string canonical_;
  std::string full_;
  std::shared_ptr<const policy::Method> method_;
};

/// Share or size of a cache to keep.
class WINNOW_EXPORT Budget {
 public:
  enum class Unit : std::uint8_t {
    entries,  ///< per KV head, mean over layers and heads
    percent,  ///< of the tokens seen at the time of compression
    bytes,    ///< per sequence, including per-entry state
  };

  /// Parses `512`, `10%` or `64MiB` (also KiB, GiB). Throws UsageError that repeats the text.
  static Budget parse(std::string_view text);
  std::string print() const;

  Unit unit() const { return unit_; }
  double amount() const { return amount_; }

  /// Entries per KV head after `tokens` tokens, rounded down. `entry_bytes`: bytes of one entry in every KV head of
  /// every layer. `besides`: bytes to subtract from a budget in bytes first.
  int entries(int tokens, std::size_t entry_bytes, std::size_t besides = 0) const;

  bool operator==(const Budget&) const = default;

 private:
  Unit unit_ = Unit::entries;
  double amount_ = 0;
};

}  // namespace winnow
