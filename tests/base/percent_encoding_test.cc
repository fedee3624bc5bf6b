// SPDX-License-Identifier: Apache-2.0
#include "base/percent_encoding.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <string>

namespace winnow {
namespace {

TEST(PercentEncodingTest, every_byte_can_be_encoded) {
  for (const char* const form : {"%%%02x", "%%%02X"}) {
    std::string encoded;
    std::string all;
    for (int byte = 0; byte < 256; ++byte) {
      char text[4];
      std::snprintf(text, sizeof text, form, static_cast<unsigned>(byte));
      encoded += text;
      all += static_cast<char>(byte);
    }
    EXPECT_EQ(percent_decoded(encoded), all);
  }
}

TEST(PercentEncodingTest, what_is_not_encoded_stays_and_is_decoded_once) {
  EXPECT_EQ(percent_decoded(""), "");
  EXPECT_EQ(percent_decoded("a+b \xC3\xA9/~"), "a+b \xC3\xA9/~");
  EXPECT_EQ(percent_decoded("100%25 of %2541"), "100% of %41");
}

TEST(PercentEncodingTest, a_percent_sign_needs_two_digits) {
  for (const char* const bad : {"%", "a%", "%2", "%2 ", "%zz", "%2z", "%z2", "%-1", "%+1", "%0x", "%%41", "%41%"})
    EXPECT_EQ(percent_decoded(bad), std::nullopt) << bad;
  EXPECT_EQ(percent_decoded(std::string_view("%41", 2)), std::nullopt) << "what comes after the text is not read";
}

}  // namespace
}  // namespace winnow
