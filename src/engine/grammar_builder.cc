// SPDX-License-Identifier: Apache-2.0
#include "engine/grammar_builder.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <string>

#include "winnow/error.h"

namespace winnow::engine {

namespace {

using StateKind = GrammarState::Kind;

constexpr std::size_t kMostStates = 1 << 20;

/// Ranges of characters with the same number of bytes in UTF-8.
constexpr CharacterRange kLengthRanges[] = {
    {0, 0x7F}, {0x80, 0x7FF}, {0x800, 0xD7FF}, {0xE000, 0xFFFF}, {0x10000, kLastCharacter}};

}  // namespace

void append_utf8(std::string& to, char32_t c) {
  const auto put = [&](char32_t byte) { to += static_cast<char>(byte); };
  const auto rest = [&](int shift) { put(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) return put(c);
  if (c < 0x800) {
    put(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    rest(6);
  } else {
    put(0xF0 | (c >> 18));
    rest(12);
    rest(6);
  }
  rest(0);
}

std::int32_t GrammarBuilder::add(const GrammarState& state) {
  if (states_.size() == kMostStates)
    throw UsageError(fmt::format("the grammar has more than {} states: make it smaller", kMostStates));
  states_.push_back(state);
  return static_cast<std::int32_t>(states_.size()) - 1;
}

std::int32_t GrammarBuilder::add_rule() {
  begins_.push_back(GrammarState::kNone);
  return static_cast<std::int32_t>(begins_.size()) - 1;
}

void GrammarBuilder::define(std::int32_t rule, const Part& part) {
  begins_[rule] = part.begin;
  const auto end = add({StateKind::end});
  states_[part.end].next = end;
}

GrammarBuilder::Part GrammarBuilder::nothing() {
  const auto one = fork();
  return {one, one};
}

GrammarBuilder::Part GrammarBuilder::bytes(std::string_view all) {
  Part out = nothing();
  for (const char c : all) {
    const auto byte = static_cast<unsigned char>(c);
    const auto after = fork();
    const auto reads = add({StateKind::byte, byte, byte, after});
    states_[out.end].next = reads;
    out.end = after;
  }
  return out;
}

GrammarBuilder::Part GrammarBuilder::character(const std::vector<CharacterRange>& ranges) {
  const Part out{fork(), fork()};
  for (const auto& [first, last] : ranges) {
    for (const auto& length : kLengthRanges) {
      if (first <= length.second && last >= length.first)
        add_range(out, std::max(first, length.first), std::min(last, length.second));
    }
  }
  return out;
}

/// Adds a range of characters of one encoded length. Ranges of bytes are combined where all bytes after the first
/// differing one may be any.
void GrammarBuilder::add_range(const Part& to, char32_t first, char32_t last) {
  for (const char32_t low : {0x3F, 0xFFF, 0x3FFFF}) {
    if (first < 0x80 || (first & ~low) == (last & ~low)) break;
    if ((first & low) != 0) {
      add_range(to, first, first | low);
      return add_range(to, (first | low) + 1, last);
    }
    if ((last & low) != low) {
      add_range(to, first, (last & ~low) - 1);
      return add_range(to, last & ~low, last);
    }
  }
  std::string least;
  std::string most;
  append_utf8(least, first);
  append_utf8(most, last);
  std::int32_t next = to.end;
  for (std::size_t i = least.size(); i-- > 0;)
    next = add({StateKind::byte, static_cast<unsigned char>(least[i]), static_cast<unsigned char>(most[i]), next});
  const auto others = add(GrammarState(states_[to.begin]));
  states_[to.begin] = {StateKind::fork, 0, 0, others, next};
}

GrammarBuilder::Part GrammarBuilder::call(std::int32_t rule) {
  const auto after = fork();
  return {add({StateKind::call, 0, 0, after, rule}), after};
}

GrammarBuilder::Part GrammarBuilder::sequence(const Part& first, const Part& second) {
  states_[first.end].next = second.begin;
  return {first.begin, second.end};
}

GrammarBuilder::Part GrammarBuilder::any_of(const std::vector<Part>& all) {
  if (all.size() == 1) return all.front();
  const auto end = fork();
  auto begin = all.front().begin;
  for (std::size_t i = 1; i < all.size(); ++i) begin = add({StateKind::fork, 0, 0, begin, all[i].begin});
  for (const auto& part : all) states_[part.end].next = end;
  return {begin, end};
}

GrammarBuilder::Part GrammarBuilder::repeated(const Part& part, int least, std::optional<int> most) {
  const bool loops = !most && least <= 1;
  const bool is_option = least == 0 && most == 1;
  if (!loops && !is_option) return counted(part, least, most);
  const auto end = fork();
  const auto begin = least == 0 ? add({StateKind::fork, 0, 0, part.begin, end}) : part.begin;
  states_[part.end] = {StateKind::fork, 0, 0, loops ? part.begin : end, end};
  return {begin, end};
}

/// Makes the part a rule, so that the grammar contains it once, however often it repeats.
GrammarBuilder::Part GrammarBuilder::counted(const Part& part, int least, std::optional<int> most) {
  const auto rule = add_rule();
  define(rule, part);
  Part out = nothing();
  for (int i = 0; i < least; ++i) out = sequence(out, call(rule));
  if (!most) return sequence(out, repeated(call(rule), 0, std::nullopt));
  const auto end = fork();
  for (int i = least; i < *most; ++i) {
    const auto once = call(rule);
    states_[out.end] = {StateKind::fork, 0, 0, once.begin, end};
    out.end = once.end;
  }
  states_[out.end].next = end;
  return {out.begin, end};
}

}  // namespace winnow::engine
