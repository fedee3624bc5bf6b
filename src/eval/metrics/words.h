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

/// The words between white space.
Words split(const icu::UnicodeString& text);

/// Words and punctuation marks by ICU's dictionaries, which include Chinese, without white space. The official scripts
/// use jieba with another dictionary, which may cut "研究生命" elsewhere.
Words segment(const icu::UnicodeString& text);

/// F1 of the words that two lists share, with multiplicity; 0 where they share none.
double f1_of(const Words& answer, const Words& reference);

}  // namespace winnow::eval
