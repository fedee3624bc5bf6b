// SPDX-License-Identifier: Apache-2.0
#include <unicode/regex.h>

#include "eval/metrics/metric.h"
#include "eval/metrics/words.h"

namespace winnow::eval {

namespace {

icu::UnicodeString without_articles(const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  icu::RegexMatcher articles("\\b(a|an|the)\\b", text, 0, status);
  return articles.replaceAll(" ", status);
}

Words english_words(std::string_view text) {
  return split(without_articles(without_ascii_punctuation(lower_case(unicode_of(text)))));
}

/// Punctuation marks that LongBench removes from Chinese words, besides the ASCII ones.
const icu::UnicodeString& chinese_punctuation() {
  static const auto marks = unicode_of(
      "！？｡。＂＃＄％＆＇（）＊＋，－／：；＜＝＞＠［＼］＾＿｀｛｜｝～｟｠｢｣､、〃》「」『』【】〔〕〖〗〘〙〚〛〜〝〞"
      "〟〰〾〿–—‘’‛“”„‟…‧﹏"
      ".");
  return marks;
}

icu::UnicodeString without_punctuation(const icu::UnicodeString& word) {
  const auto text = without_ascii_punctuation(word);
  icu::UnicodeString out;
  for (int i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    if (chinese_punctuation().indexOf(text.char32At(i)) < 0) out.append(text.char32At(i));
  }
  return out;
}

Words chinese_words(std::string_view text) {
  Words out;
  for (const auto& word : segment(unicode_of(text))) {
    auto bare = without_punctuation(lower_case(word));
    if (!bare.isEmpty()) out.push_back(std::move(bare));
  }
  return out;
}

}  // namespace

double qa_f1(std::string_view answer, std::string_view reference) {
  return f1_of(english_words(answer), english_words(reference));
}

double qa_f1_zh(std::string_view answer, std::string_view reference) {
  return f1_of(chinese_words(answer), chinese_words(reference));
}

}  // namespace winnow::eval
