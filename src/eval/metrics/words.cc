// SPDX-License-Identifier: Apache-2.0
#include "eval/metrics/words.h"

#include <unicode/brkiter.h>
#include <unicode/locid.h>
#include <unicode/uchar.h>

#include <algorithm>
#include <map>
#include <memory>
#include <stdexcept>

namespace winnow::eval {

namespace {

bool is_ascii_punctuation(UChar32 c) { return c < 128 && u_isgraph(c) != 0 && u_isalnum(c) == 0; }

bool is_space(UChar32 c) { return u_isUWhiteSpace(c) != 0; }

std::map<icu::UnicodeString, int> counts_of(const Words& words) {
  std::map<icu::UnicodeString, int> out;
  for (const auto& word : words) ++out[word];
  return out;
}

}  // namespace

icu::UnicodeString unicode_of(std::string_view utf8) {
  return icu::UnicodeString::fromUTF8(icu::StringPiece(utf8.data(), static_cast<int>(utf8.size())));
}

icu::UnicodeString lower_case(icu::UnicodeString text) { return text.toLower(icu::Locale::getRoot()); }

icu::UnicodeString without_ascii_punctuation(const icu::UnicodeString& text) {
  icu::UnicodeString out;
  for (int i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (!is_ascii_punctuation(c)) out.append(c);
  }
  return out;
}

Words split(const icu::UnicodeString& text) {
  Words out;
  bool in_word = false;
  for (int i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (!is_space(c) && !in_word) out.emplace_back();
    in_word = !is_space(c);
    if (in_word) out.back().append(c);
  }
  return out;
}

Words segment(const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  const std::unique_ptr<icu::BreakIterator> cuts(
      icu::BreakIterator::createWordInstance(icu::Locale::getSimplifiedChinese(), status));
  if (U_FAILURE(status)) throw std::runtime_error(u_errorName(status));
  cuts->setText(text);
  Words out;
  for (int begin = cuts->first(), end = cuts->next(); end != icu::BreakIterator::DONE;
       begin = end, end = cuts->next()) {
    icu::UnicodeString word(text, begin, end - begin);
    if (!is_space(word.char32At(0))) out.push_back(std::move(word));
  }
  return out;
}

double f1_of(const Words& answer, const Words& reference) {
  const auto expected = counts_of(reference);
  int common = 0;
  for (const auto& [word, times] : counts_of(answer)) {
    if (const auto found = expected.find(word); found != expected.end()) common += std::min(times, found->second);
  }
  // 2 p r / (p + r) with p = common / answer, r = common / reference
  return common > 0 ? 2.0 * common / static_cast<double>(answer.size() + reference.size()) : 0;
}

}  // namespace winnow::eval
