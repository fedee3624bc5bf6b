// SPDX-License-Identifier: Apache-2.0
// Compares the filter with a reference that looks at the whole text after each token, as vLLM does.
#include "engine/stop_filter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>

namespace winnow::engine {
namespace {

struct Answer {
  std::string text;
  bool stopped = false;
};

/// The text before the first stop text that a token after the first `least` ones completes.
Answer reference(const std::vector<std::string>& parts, const std::vector<std::string>& stops, std::size_t least) {
  std::string text;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t before = text.size();
    text += parts[i];
    if (i < least) continue;
    for (std::size_t begin = 0; begin < text.size(); ++begin) {
      for (const auto& stop : stops) {
        if (text.compare(begin, stop.size(), stop) == 0 && begin + stop.size() > before)
          return {text.substr(0, begin), true};
      }
    }
  }
  return {text, false};
}

Answer filtered(const std::vector<std::string>& parts, const std::vector<std::string>& stops, std::size_t least) {
  StopFilter filter(stops);
  Answer out;
  for (std::size_t i = 0; i < parts.size() && !out.stopped; ++i) {
    if (i < least) {
      filter.pass(parts[i]);
    } else {
      out.stopped = filter.take(parts[i]);
    }
    if (!out.stopped) out.text += filter.release();
  }
  out.text += filter.finish();
  return out;
}

std::string random_text(std::mt19937& random, std::size_t least, std::size_t most) {
  std::string out(least + random() % (most - least + 1), ' ');
  for (char& c : out) c = "ab"[random() % 2];
  return out;
}

TEST(StopFilter, ends_a_text_where_a_search_of_the_whole_text_does) {
  std::mt19937 random(3);
  int stopped = 0;
  int let_through = 0;
  for (int i = 0; i < 20'000 && !testing::Test::HasFailure(); ++i) {
    std::vector<std::string> parts;
    std::vector<std::string> stops;
    for (auto n = random() % 12; n > 0; --n) parts.push_back(random_text(random, 0, 4));
    for (auto n = random() % 3; n > 0; --n) stops.push_back(random_text(random, 1, 7));
    const std::size_t least = random() % 8;
    const auto expected = reference(parts, stops, least);
    const auto got = filtered(parts, stops, least);
    EXPECT_EQ(got.text, expected.text);
    EXPECT_EQ(got.stopped, expected.stopped);
    stopped += expected.stopped ? 1 : 0;
    let_through += reference(parts, stops, 0).text != expected.text ? 1 : 0;
  }
  EXPECT_GT(stopped, 1000);
  EXPECT_GT(let_through, 1000);
}

TEST(StopFilter, holds_back_only_what_may_begin_a_stop_text) {
  std::mt19937 random(4);
  for (int i = 0; i < 5'000; ++i) {
    const std::vector<std::string> stops{random_text(random, 1, 6), random_text(random, 1, 6)};
    StopFilter filter(stops);
    std::string text;
    std::string released;
    for (int n = 0; n < 10; ++n) {
      const auto part = random_text(random, 0, 3);
      text += part;
      if (filter.take(part)) break;
      released += filter.release();
      const std::string held = text.substr(released.size());
      EXPECT_TRUE(held.empty() ||
                  std::any_of(stops.begin(), stops.end(), [&](const auto& stop) { return stop.starts_with(held); }))
          << held;
      EXPECT_TRUE(text.starts_with(released));
    }
  }
}

}  // namespace
}  // namespace winnow::engine
