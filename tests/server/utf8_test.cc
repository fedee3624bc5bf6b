// SPDX-License-Identifier: Apache-2.0
#include "server/utf8.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>

#include "base/utf8.h"

namespace winnow::server {

namespace {

/// The JSON library's replacement of bytes that are not UTF-8.
std::string replaced(const std::string& text) {
  const nlohmann::json json = text;
  const std::string quoted = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(quoted).get<std::string>();
}

/// Random bytes that often begin a character.
std::string random_bytes(std::mt19937& random) {
  static const std::string kBytes = "a\x7f\x80\x8f\x90\x9f\xa0\xbf\xc1\xc2\xdf\xe0\xe1\xed\xef\xf0\xf1\xf4\xf5\xff";
  std::string out(random() % 12, '\0');
  for (char& byte : out) byte = kBytes[random() % kBytes.size()];
  return out;
}

bool is_taken_by_json(const std::string& text) {
  try {
    const std::string dumped = nlohmann::json(text).dump();
    return !dumped.empty();
  } catch (const nlohmann::json::type_error&) {
    return false;
  }
}

}  // namespace

TEST(Utf8, pieces_replace_what_the_whole_replaces) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    const std::string whole = random_bytes(random);
    std::string pieces;
    std::string held;
    for (const char byte : whole) {
      held += byte;
      pieces += replaced(take_whole_characters(held));
    }
    EXPECT_LE(held.size(), 3U);
    EXPECT_EQ(pieces + replaced(held), replaced(whole));
  }
}

TEST(Utf8, what_is_none_is_replaced_as_json_does) {
  std::mt19937 random(3);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = random_bytes(random);
    EXPECT_EQ(as_utf8(text), replaced(text));
  }
}

TEST(Utf8, a_character_is_held_until_it_is_whole) {
  std::string held = "a\xe2\x82";
  EXPECT_EQ(take_whole_characters(held), "a");
  held += "\xac!";
  EXPECT_EQ(take_whole_characters(held), "\xe2\x82\xac!");
  EXPECT_EQ(held, "");
}

TEST(Utf8, is_what_json_takes) {
  std::mt19937 random(2);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = random_bytes(random);
    EXPECT_EQ(is_utf8(text), is_taken_by_json(text));
  }
}

TEST(Utf8, characters_are_counted) {
  EXPECT_EQ(count_characters(""), 0U);
  EXPECT_EQ(count_characters("a\xe2\x82\xac!"), 3U);
}

}  // namespace winnow::server
