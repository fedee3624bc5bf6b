// SPDX-License-Identifier: Apache-2.0
// Untrusted texts: their lines, JSON in them, and how they are shown.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/printable.h"
#include "base/text_input.h"
#include "base/text_lines.h"
#include "support/temp.h"
#include "winnow/error.h"

namespace winnow {
namespace {

using Json = nlohmann::ordered_json;

class TextTest : public testing::Test {
 protected:
  TextInput input(const std::string& text) {
    std::ofstream(path_, std::ios::binary) << text;
    return TextInput(path_);
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "text";
};

using Numbered = std::vector<std::pair<int, std::string>>;

Numbered lines_of(TextInput input) {
  Numbered out;
  TextLines lines(std::move(input));
  while (lines.next()) {
    const int number = lines.number();
    out.emplace_back(number, lines.rest());
  }
  return out;
}

TEST_F(TextTest, has_lines) {
  const std::string long_line(200'000, 'x');
  EXPECT_EQ(lines_of(input("")), Numbered());
  EXPECT_EQ(lines_of(input("\n\n")), Numbered());
  EXPECT_EQ(lines_of(input("a\n\nb")), (Numbered{{1, "a"}, {3, "b"}}));
  EXPECT_EQ(lines_of(input("\na\r\n" + long_line + "\nc\n")), (Numbered{{2, "a\r"}, {3, long_line}, {4, "c"}}));
}

TEST_F(TextTest, lines_know_where_they_begin_and_whether_they_end) {
  const std::string long_line(100'000, 'x');
  TextLines lines(input("ab\n\n" + long_line + "\nlast"));
  for (const auto& [offset, ended] : {std::pair(0U, true), {4U, true}, {100'005U, false}}) {
    ASSERT_TRUE(lines.next());
    lines.rest();
    EXPECT_EQ(lines.offset(), offset);
    EXPECT_EQ(lines.is_ended(), ended);
  }
  EXPECT_FALSE(lines.next());
  EXPECT_EQ(lines.number(), 4);
}

TEST_F(TextTest, what_is_left_of_a_line_is_passed_over) {
  TextLines lines(input(R"({"a": 1} more)" + std::string(100'000, ' ') + "\n[2]\n"));
  ASSERT_TRUE(lines.next());
  EXPECT_THROW(parse_json<Json>(lines), JsonError);
  ASSERT_TRUE(lines.next());
  EXPECT_EQ(parse_json<Json>(lines), Json::array({2}));
}

TEST_F(TextTest, a_read_that_fails_is_no_end) {
  const int fd = open("/dev/null", O_WRONLY);
  TextLines lines(TextInput(fd, "closed"));
  EXPECT_THROW(lines.next(), InputError);
  EXPECT_THROW(TextInput(folder_ / ""), InputError);
  EXPECT_THROW(TextInput(folder_ / "absent"), InputError);
  EXPECT_THROW(TextInput("/dev/zero"), InputError);
}

TEST_F(TextTest, a_pipe_that_nobody_writes_to_can_be_given_up) {
  int asked = 0;
  ASSERT_EQ(mkfifo(path_.c_str(), 0600), 0);
  TextInput pipe(path_, [&asked] { return ++asked == 2; });
  EXPECT_THROW(pipe.read_all(), Interrupted);
}

TEST(Json, is_what_the_library_parses) {
  for (const std::string text : {R"({"b": [1, -2, 3.5, true, null, "x\u00e9\n"], "a": {"c": {}}, "d": []})", "[]",
                                 "\"text\"", "18446744073709551615", "[[[]], {\"\": 0}]"})
    EXPECT_EQ(parse_json<Json>(text).dump(), Json::parse(text).dump()) << text;
}

TEST(Json, refuses_what_is_none) {
  for (const std::string text : {"", "{", "[1,]", "{\"a\": 1}}", "nul", "\"\xff\"", "1e999", "\"a", "[1] x"})
    EXPECT_THROW(parse_json<Json>(text), JsonError) << text;
}

TEST(Json, below_the_kept_levels_lists_and_objects_are_empty) {
  const std::string text = R"({"a": [1, {"b": 2}, [3]], "c": {"a": 4}, "d": "e"})";
  EXPECT_EQ(parse_json<Json>(text, {.kept = 1}).dump(), R"({"a":[],"c":{},"d":"e"})");
  EXPECT_EQ(parse_json<Json>(text, {.kept = 2}).dump(), R"({"a":[1,{},[]],"c":{"a":4},"d":"e"})");
  EXPECT_EQ(parse_json<Json>(text, {.kept = 3}), Json::parse(text));
  EXPECT_THROW(parse_json<Json>(std::string(R"({"a": [1,]})"), {.kept = 1}), JsonError);
}

std::string nested(std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); }

TEST(Json, has_a_limited_depth) {
  EXPECT_NO_THROW(parse_json<Json>(nested(kJsonLevels)));
  EXPECT_THROW(parse_json<Json>(nested(kJsonLevels + 1)), JsonError);
  EXPECT_NO_THROW(parse_json<Json>(nested(kJsonLevels), {.kept = 1}));
  EXPECT_THROW(parse_json<Json>(nested(kJsonLevels + 1), {.kept = 1}), JsonError);
  EXPECT_THROW(parse_json<Json>(nested(1'000'000)), JsonError);
  std::string objects;
  for (int i = 0; i < 60'000; ++i) objects += "{\"a\":";
  EXPECT_THROW(parse_json<Json>(objects), JsonError);
}

TEST(Json, refuses_members_that_come_twice_and_names_them) {
  for (const std::string text : {R"({"a": 1, "b": 2, "a": 1})", R"([{"b": {"a": [], "c": 1, "a": {}}}])",
                                 R"({"a": 1, "b": {"c": {"d": 3}}, "\u0061": 2})"}) {
    for (const std::size_t kept : {0U, 1U, 64U}) {
      try {
        parse_json<Json>(text, {.kept = kept});
        ADD_FAILURE() << text;
      } catch (const JsonError& error) {
        EXPECT_STREQ(error.what(), "its JSON has the name a twice in one object");
      }
    }
  }
  const std::string text = R"({"a": {"a": {"a": 1}}, "b": [{"a": 1}, {"a": 2}]})";
  EXPECT_EQ(parse_json<Json>(text), Json::parse(text));
}

TEST(Json, has_as_many_values_as_are_allowed) {
  const std::string text = R"({"a": [1, {}], "b": "c"})";  // an object, a list, 1, an object, "c", and two names
  EXPECT_EQ(parse_json<Json>(text, {.values = 7}), Json::parse(text));
  EXPECT_THROW(parse_json<Json>(text, {.values = 6}), JsonError);
  EXPECT_THROW(parse_json<Json>(text, {.kept = 0, .values = 6}), JsonError) << "those that are not kept, too";
}

/// An ordered_json object searches all members for each new one, which would be 5 * 10^11 comparisons here.
TEST(Json, takes_very_many_members_in_their_order) {
  constexpr int kMembers = 1'000'000;
  std::string text = "{";
  for (int i = 0; i < kMembers; ++i) text += fmt::format("{}\"{}\": {}", i > 0 ? "," : "", i, i);
  const auto json = parse_json<nlohmann::ordered_json>(text + "}");
  ASSERT_EQ(json.size(), kMembers);
  int next = 0;
  for (const auto& [name, value] : json.items()) {
    EXPECT_EQ(name, std::to_string(next));
    EXPECT_EQ(value, next++);
  }
}

TEST(Json, stops_when_it_is_asked_to) {
  std::stop_source source;
  const StopScope scope(source.get_token());
  EXPECT_EQ(parse_json<Json>(std::string("[1]")), Json::array({1}));
  source.request_stop();
  EXPECT_THROW(parse_json<Json>(std::string("[1]")), Interrupted);
  const StopScope inner(std::stop_source().get_token());
  EXPECT_EQ(parse_json<Json>(std::string("[1]")), Json::array({1}));
}

TEST(Printable, leaves_text_and_escapes_what_steers_a_terminal) {
  EXPECT_EQ(printable("plain, Ünïcode, 漢字, 🙂"), "plain, Ünïcode, 漢字, 🙂");
  EXPECT_EQ(printable("a\x1b[31mb\r\n\t\x7f"), "a\\x1b[31mb\\x0d\\x0a\\x09\\x7f");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "a control character of one byte elsewhere";
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "right to left";
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80\xf4\x90\x80\x80"), "\\xc0\\xaf\\xed\\xa0\\x80\\xf4\\x90\\x80\\x80");
}

TEST(Brief, escapes_bytes_and_cuts_long_texts) {
  EXPECT_EQ(brief("snap\nkv\xff"), "snap\\x0akv\\xff");
  EXPECT_EQ(brief(std::string(80, 'a')), std::string(80, 'a'));
  EXPECT_EQ(brief(std::string(100, 'a')), std::string(80, 'a') + "...");
  EXPECT_EQ(brief(std::string(79, 'a') + "漢b"), std::string(79, 'a') + "...") << "no character is cut";
}

}  // namespace
}  // namespace winnow
