// SPDX-License-Identifier: Apache-2.0
#include "base/text_kind.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/log.h"
#include "base/shell.h"
#include "base/utf8.h"
#include "winnow/error.h"

namespace winnow {

namespace {

using namespace std::string_view_literals;

struct Kind {
  std::string_view begin;
  const char* what;
  const char* remedy;  ///< with {} for the file's name
};

/// Longer prefixes precede their own prefixes.
constexpr Kind kKinds[] = {
    {"%PDF-"sv, "a PDF document", "pdftotext {} text.txt"},
    {"\x1F\x8B"sv, "compressed by gzip", "gunzip -c {} > text.txt"},
    {"BZh"sv, "compressed by bzip2", "bunzip2 -c {} > text.txt"},
    {"\xFD\x37zXZ\0"sv, "compressed by xz", "xz -dc {} > text.txt"},
    {"\x28\xB5\x2F\xFD"sv, "compressed by zstd", "zstd -dc {} > text.txt"},
    {"PK\x03\x04"sv, "a zip archive (such as a docx, odt or epub document)", "pandoc -t plain -o text.txt {}"},
    {"\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"sv, "an old Office document", "libreoffice --headless --convert-to txt {}"},
    {"\x89PNG\r\n"sv, "an image (PNG)", "tesseract {} text"},
    {"\xFF\xD8\xFF"sv, "an image (JPEG)", "tesseract {} text"},
    {"II*\0"sv, "an image (TIFF)", "tesseract {} text"},
    {"MM\0*"sv, "an image (TIFF)", "tesseract {} text"},
    {"GIF8"sv, "an image (GIF)", "tesseract {} text"},
    {"\xFF\xFE\0\0"sv, "text in UTF-32", "iconv -f UTF-32 -t UTF-8 {} > text.txt"},
    {"\xFF\xFE"sv, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 {} > text.txt"},
    {"\xFE\xFF"sv, "text in UTF-16", "iconv -f UTF-16 -t UTF-8 {} > text.txt"},
    {"\x7F"
     "ELF"sv,
     "a program", nullptr},
    {"SQLite format 3\0"sv, "a database (SQLite)", nullptr},
    {"GGUF"sv, "a model (GGUF)", nullptr},
    {"winnowkv"sv, "a cache saved by winnow", nullptr},
};

/// The name as a shell word, or FILE for stdin.
std::string word_of(const std::string& name) { return name == "stdin" ? "FILE" : shell_word(name); }

/// Description of a byte's place for a person.
std::string place_of(std::size_t at, std::string_view text) {
  return fmt::format("byte {} (line {})", at, 1 + std::count(text.begin(), text.begin() + static_cast<long>(at), '\n'));
}

/// Guesses UTF-16 without a byte order mark by which byte of each pair is zero in most characters; null: not UTF-16.
const char* utf16_without_mark(std::string_view text) {
  if (text.size() % 2 != 0) return nullptr;
  const auto begin = text.substr(0, 256);
  std::size_t zeros[2] = {0, 0};
  for (std::size_t i = 0; i < begin.size(); ++i) zeros[i % 2] += begin[i] == '\0' ? 1 : 0;
  if (zeros[1] > begin.size() / 4 && zeros[0] == 0) return "UTF-16LE";
  if (zeros[0] > begin.size() / 4 && zeros[1] == 0) return "UTF-16BE";
  return nullptr;
}

[[noreturn]] void refuse_zero(std::size_t at, std::string_view text, const std::string& name) {
  if (const char* const encoding = utf16_without_mark(text))
    throw InputError(fmt::format("{0} is text in {1}: convert it to UTF-8 with `iconv -f {1} -t UTF-8 {2} > text.txt`",
                                 name, encoding, word_of(name)));
  throw InputError(fmt::format("{} is not text: {} is zero", name, place_of(at, text)));
}

/// If valid multi-byte characters precede the wrong byte, the text is damaged UTF-8. Otherwise its encoding is an older
/// one, most likely Latin-1, or Windows-1252 if it has bytes that are control characters in Latin-1.
[[noreturn]] void refuse_encoding(std::size_t at, std::string_view text, const std::string& name) {
  const auto is_high = [](unsigned char c) { return c >= 0x80; };
  const auto is_control = [](unsigned char c) { return c >= 0x80 && c < 0xA0; };
  const auto before = text.substr(0, at);
  const bool damaged = std::any_of(before.begin(), before.end(), is_high);
  const char* const encoding = std::any_of(text.begin(), text.end(), is_control) ? "WINDOWS-1252" : "LATIN1";
  const auto command = damaged ? "iconv -c -f UTF-8" : fmt::format("iconv -f {}", encoding);
  throw InputError(fmt::format("{} is not UTF-8: {} is 0x{:02x}; `{} -t UTF-8 {} > text.txt` {}", name,
                               place_of(at, text), static_cast<unsigned char>(text[at]), command, word_of(name),
                               damaged ? "leaves out such bytes" : "converts it if it is " + std::string(encoding)));
}

}  // namespace

std::string why_no_text(std::string_view bytes, const std::string& name) {
  const auto* const kind = std::ranges::find_if(kKinds, [&](const Kind& k) { return bytes.starts_with(k.begin); });
  if (kind == std::end(kKinds)) return "";
  if (kind->remedy == nullptr) return fmt::format("{} is {}, not text", name, kind->what);
  const auto command = fmt::format(fmt::runtime(kind->remedy), word_of(name));
  return fmt::format("{} is {}: convert it to UTF-8 text with `{}`", name, kind->what, command);
}

void check_text(std::string_view text, const std::string& name) {
  if (text.empty()) throw InputError(fmt::format("{} is empty: give a file with text", name));
  if (const auto zero = text.find('\0'); zero != std::string_view::npos) refuse_zero(zero, text, name);
  const auto whole = whole_characters(text);
  if (whole == text.size()) return;
  if (whole + unfinished_character(text) < text.size()) refuse_encoding(whole, text, name);
  log().warn("{} ends in the middle of a character", name);
}

}  // namespace winnow
