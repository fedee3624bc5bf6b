#include "eval/metrics/qa_f1.h"

#include <unicode/locid.h>
#include <unicode/regex.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <map>

namespace winnow::eval {
namespace {

using Words = std::map<icu::UnicodeString, int>;

bool is_ascii_punctuation(UChar32 c) { return c < 128 && u_isgraph(c) != 0 && u_isalnum(c) == 0; }

icu::UnicodeString without_punctuation(const icu::UnicodeString& text) {
  icu::UnicodeString out;
  for (int i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    const UChar32 c = text.char32At(i);
    if (!is_ascii_punctuation(c)) out.append(c);
  }
  return out;
}

icu::UnicodeString without_articles(const icu::UnicodeString& text) {
  UErrorCode status = U_ZERO_ERROR;
  icu::RegexMatcher articles("\\b(a|an|the)\\b", text, 0, status);
  return articles.replaceAll(" ", status);
}

Words words_of(std::string_view utf8) {
  auto text = icu::UnicodeString::fromUTF8(icu::StringPiece(utf8.data(), static_cast<int>(utf8.size())));
  text = without_articles(without_punctuation(text.toLower(icu::Locale::getRoot())));
  Words out;
  icu::UnicodeString word;
  const auto end_word = [&] {
    if (!word.isEmpty()) ++out[word];
    word.remove();
  };
  for (int i = 0; i < text.length(); i = text.moveIndex32(i, 1)) {
    if (u_isUWhiteSpace(text.char32At(i)) != 0) {
      end_word();
    } else {
      word.append(text.char32At(i));
    }
  }
  end_word();
  return out;
}

int count(const Words& words) {
  int out = 0;
  for (const auto& [word, times] : words) out += times;
  return out;
}

int count_common(const Words& a, const Words& b) {
  int out = 0;
  for (const auto& [word, times] : a) {
    if (const auto found = b.find(word); found != b.end()) out += std::min(times, found->second);
  }
  return out;
}

}  // namespace

double qa_f1(std::string_view answer, std::span<const std::string> references) {
  const Words said = words_of(answer);
  double best = 0;
  for (const auto& reference : references) {
    const Words expected = words_of(reference);
    const int common = count_common(said, expected);
    // 2 p r / (p + r) with p = common / said, r = common / expected
    if (common > 0) best = std::max(best, 2.0 * common / (count(said) + count(expected)));
  }
  return best;
}

}  // namespace winnow::eval
