// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unicode/unistr.h>

#include <string_view>
#include <vector>

/// What the metrics do with texts, as Python's str does it.
namespace winnow::eval {

using Words = std::vector<icu::UnicodeString>;

/// Invalid UTF-8 becomes U+FFFD.
icu::UnicodeString unicode_of(std::string_view utf8);

icu::UnicodeString lower_case(icu::UnicodeString text);

/// Without the 32 punctuation characters and symbols of ASCII.
icu::UnicodeString without_ascii_punctuation(const icu::UnicodeString& text);

/// What stands between white space.
Words split(const icu::UnicodeString& text);

/// Words and punctuation marks by ICU's dictionaries, which know Chinese; white space is left out. The official scripts
/// use jieba, whose dictionary is another one: "研究生命" may be cut elsewhere.
Words segment(const icu::UnicodeString& text);

/// F1 over what two lists have in common, each word as often as it is in both; 0 where nothing is.
double f1_of(const Words& answer, const Words& reference);

}  // namespace winnow::eval
