// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/grammar_rules.h"
#include "engine/key_set.h"

namespace winnow::engine {

/// A place in a grammar, after some bytes of a text of its language, with all possible parses of them at once. Parses
/// that have called a rule at the same byte share a frame (Earley, 1970; Tomita's graph-structured stack), so that
/// their number does not double with each byte. Texts that are tried at one place share the work for their common
/// prefixes.
class GrammarWalk {
 public:
  explicit GrammarWalk(std::shared_ptr<const GrammarRules> rules);

  /// True if the text may end here.
  bool may_end() const { return tried_.front().may_end; }
  /// True if nothing can be parsed from here. Only a grammar of the empty language begins so.
  bool is_over() const { return is_dead(tried_.front()); }
  /// True if a byte may come next.
  bool may_begin(unsigned char byte) const { return first_[byte]; }
  /// True if these bytes may come next.
  bool allows(std::string_view bytes) { return !is_dead(tried_[try_bytes(bytes)]); }
  /// REQUIRES: allows(bytes).
  void accept(std::string_view bytes);

  /// States visited since the walk began.
  std::int64_t steps() const { return steps_; }
  /// allows() and accept() throw UsageError when steps() exceeds this.
  void set_limit(std::int64_t steps) { limit_ = steps; }

 private:
  /// A state within a call of its rule.
  struct Item {
    std::int32_t state;
    std::int32_t frame;
  };
  /// A call of a rule at some byte.
  struct Frame {
    std::vector<Item> returns;  ///< where its callers continue
    bool is_empty = false;      ///< the rule can match the empty text
  };
  struct Place {
    std::vector<Item> items;  ///< states that read a byte
    bool may_end = false;
    std::vector<std::pair<unsigned char, std::size_t>> next = {};  ///< places that were tried from here, by byte
  };
  struct Called {
    std::int64_t place = -1;  ///< number of the place where the rule was last called
    std::int32_t frame = 0;
  };

  static bool is_dead(const Place& place) { return place.items.empty() && !place.may_end; }

  void add(std::int32_t state, std::int32_t frame);
  void call(const GrammarState& state, std::int32_t frame);
  void end(std::int32_t frame, Place& place);
  void begin_place();
  /// Follows all states that read no byte.
  void close(Place& place);
  Place read(unsigned char byte, const std::vector<Item>& items);
  /// Index of the place after these bytes, or of the first dead one on the way.
  std::size_t try_bytes(std::string_view bytes);
  /// Removes the frames that no state refers to.
  void collect();
  void find_first_bytes();

  std::shared_ptr<const GrammarRules> rules_;
  std::vector<Place> tried_ = std::vector<Place>(1);  ///< the first one is the walk's current place
  std::bitset<256> first_;
  std::vector<Frame> frames_ = std::vector<Frame>(1);  ///< the first one is that of the rule `root`
  std::size_t frames_kept_ = 1;                        ///< frames left by the last collect()
  std::int64_t steps_ = 0;
  std::int64_t limit_;
  // State of the place that is being made.
  std::int64_t places_ = 0;
  std::size_t first_frame_ = 0;
  std::vector<Called> called_;  ///< [rule]
  KeySet seen_;
  std::vector<Item> todo_;
};

}  // namespace winnow::engine
