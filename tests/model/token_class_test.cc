// SPDX-License-Identifier: Apache-2.0
#include "model/token_class.h"

#include <gtest/gtest.h>

namespace winnow::model {
namespace {

TEST(TokenClass, says_where_words_begin_and_end) {
  for (const char* text : {"7", "ab", "f0", "-", "_x", "Z9-"}) {
    EXPECT_TRUE(class_of(text).begins_in_word) << text;
    EXPECT_TRUE(class_of(text).ends_in_word) << text;
  }
  EXPECT_FALSE(class_of(" the").begins_in_word);
  EXPECT_TRUE(class_of(" the").ends_in_word);
  EXPECT_TRUE(class_of("it's").begins_in_word);
  EXPECT_TRUE(class_of("end.").begins_in_word);
  EXPECT_FALSE(class_of("end.").ends_in_word);
  for (const char* text : {" ", ",", "(", "é", "\n", "\xc3", "\t"}) {
    EXPECT_FALSE(class_of(text).begins_in_word) << text;
    EXPECT_FALSE(class_of(text).ends_in_word) << text;
  }
}

TEST(TokenClass, says_where_sentences_and_lines_end) {
  for (const char* text : {".", "!", "?", "...", "…", "。", ".\"", "?)", " etc.", ".” ", "!'"})
    EXPECT_TRUE(class_of(text).ends_sentence) << text;
  for (const char* text : {",", ":", ".a", "\"", " ", "\xe2\x80", "4.5"})
    EXPECT_FALSE(class_of(text).ends_sentence) << text;
  for (const char* text : {"\n", "\n\n", ".\n", "\r\n", "a\nb", ""}) EXPECT_TRUE(class_of(text).ends_line) << text;
  for (const char* text : {" ", ".", "n", "\\n"}) EXPECT_FALSE(class_of(text).ends_line) << text;
}

}  // namespace
}  // namespace winnow::model
