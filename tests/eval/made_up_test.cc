// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/made_up.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

#include "winnow/error.h"

namespace winnow::eval {
namespace {

TEST(RandomTest, depends_on_seed_purpose_and_number_alone) {
  EXPECT_EQ(Random(1, "a", 0).next(), Random(1, "a", 0).next());
  std::set<std::uint64_t> different;
  for (const std::uint32_t seed : {1U, 2U}) {
    for (const char* what : {"a", "b"}) {
      for (const int number : {0, 1}) different.insert(Random(seed, what, number).next());
    }
  }
  EXPECT_EQ(different.size(), 8U);
}

TEST(RandomTest, below_reaches_everything_about_equally_often) {
  Random random(1, "dice", 0);
  std::vector<int> times(6);
  for (int i = 0; i < 60000; ++i) ++times.at(static_cast<std::size_t>(random.below(6)));
  for (const int n : times) EXPECT_NEAR(n, 10000, 500);  // 5.5 standard deviations of 91
}

TEST(RandomTest, distinct_is_a_sample_without_replacement) {
  Random random(1, "x", 0);
  std::vector<int> first(5);
  for (int i = 0; i < 1000; ++i) {
    const auto drawn = random.distinct(3, 5);
    EXPECT_EQ(std::set(drawn.begin(), drawn.end()).size(), 3U);
    for (const int n : drawn) EXPECT_TRUE(n >= 0 && n < 5);
    ++first[drawn.front()];
  }
  for (const int n : first) EXPECT_GT(n, 100);
  auto all = random.distinct(5, 5);
  random.shuffle(all);
  EXPECT_EQ(std::set(all.begin(), all.end()), (std::set{0, 1, 2, 3, 4}));
}

TEST(MadeUpTest, has_its_form) {
  Random random(3, "x", 0);
  const std::regex uuid("[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}");
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(std::regex_match(made_up_uuid(random), uuid));
    EXPECT_TRUE(std::regex_match(made_up_number(random), std::regex("[1-9][0-9]{6}")));
    EXPECT_TRUE(std::regex_match(made_up_word(random), std::regex("[a-z]+-[a-z]+")));
    EXPECT_TRUE(std::regex_match(made_up_letters(random, 5, 'A'), std::regex("[A-Z]{5}")));
  }
}

TEST(MadeUpTest, words_are_all_different) {
  Random random(3, "x", 0);
  for (const int count : {1, 440, 441, 48039}) {
    const auto words = made_up_words(random, count);
    EXPECT_EQ(std::set(words.begin(), words.end()).size(), static_cast<std::size_t>(count));
  }
  EXPECT_THROW(made_up_words(random, 48040), InputError);
}

}  // namespace
}  // namespace winnow::eval
