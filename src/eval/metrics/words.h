// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unicode/unistr.h>

#include <string_view>
#include <vector>

/// Text functions of the metrics, with the semantics of Python's str.
namespace winnow::eval {

using Words = std::vector<icu::UnicodeString>;

/// Replaces invalid UTF-8 by U+FFFD.
icu::UnicodeString unicode_of(std::string_view utf8);

icu::UnicodeString lower_case(icu::UnicodeString text);

/// Removes the 32 punctuation characters and symbols of ASCII.
icu::UnicodeString without_ascii_punctuation(const icu::UnicodeString& text);

/// Words separated by white space.
Words split(const icu::UnicodeString& text);

/// Words and punctuation marks without white space, by ICU's dictionaries, which include Chinese. The official scripts
/// use jieba with another dictionary, so boundaries may differ ("研究生命").
Words segment(const icu::UnicodeString& text);

/// F1 of the words in both lists, with multiplicity; 0 if they share none.
double f1_of(const Words& answer, const Words& reference);

}  // namespace winnow::eval
