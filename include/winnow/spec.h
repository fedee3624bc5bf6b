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

/// A KV-cache method with its options, read from a spec string such as `snapkv:window=16` or `ada(snapkv):floor=0.2`.
/// A value: cheap to copy, immutable, safe to share between threads.
class WINNOW_EXPORT Spec {
 public:
  /// `full`.
  Spec();

  /// Reads one spec. Throws UsageError: an unknown method or option names the nearest one and lists all; a combination
  /// that cannot work says why. Nothing about a model is needed to decide that.
  static Spec parse(std::string_view text);
  /// The same with other presets than the built-in ones.
  static Spec parse(std::string_view text, const policy::Registry& registry);
  /// The same for what has no end: a method that evicts at every step takes positions=cache where the text does not say
  /// otherwise.
  static Spec parse_endless(std::string_view text);
  /// Reads a list: a comma outside brackets starts a new spec unless `key=` follows it.
  static std::vector<Spec> parse_list(std::string_view text);

  /// Canonical form: the preset as typed, options that differ from their default in declared order. parse(print(s)) =
  /// s.
  std::string print() const;
  /// The same with every option written out.
  std::string print_full() const;

  bool operator==(const Spec& other) const { return print() == other.print(); }

  const policy::Method& method() const { return *method_; }
  /// That of the method that drafts for this one (policy::Draft). REQUIRES: its method has a draft.
  Spec drafter() const;

 private:
  Spec(policy::Method method, std::string canonical, std::string full);

  std::string canonical_;
  std::string full_;
  std::shared_ptr<const policy::Method> method_;
};

/// The part of a cache that may be kept.
class WINNOW_EXPORT Budget {
 public:
  enum class Unit : std::uint8_t {
    entries,  ///< per KV head, averaged over layers and heads
    percent,  ///< of the tokens seen when compaction happens
    bytes,    ///< per sequence, per-entry state included
  };

  /// Reads `512`, `10%` or `64MiB` (also KiB, GiB). Throws UsageError that repeats the text.
  static Budget parse(std::string_view text);
  std::string print() const;

  Unit unit() const { return unit_; }
  double amount() const { return amount_; }

  /// Entries per KV head when `tokens` have been seen and one entry in each KV head of each layer takes `entry_bytes`
  /// together; rounded down. Of a number of bytes, `besides` are for something else.
  int entries(int tokens, std::size_t entry_bytes, std::size_t besides = 0) const;

  bool operator==(const Budget&) const = default;

 private:
  Unit unit_ = Unit::entries;
  double amount_ = 0;
};

}  // namespace winnow
