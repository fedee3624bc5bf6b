// SPDX-License-Identifier: Apache-2.0
#include "policy/spec_reader.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <iterator>

#include "base/printable.h"
#include "policy/suggest.h"
#include "winnow/error.h"

namespace winnow::policy {

namespace {

constexpr std::size_t kMaxLength = 4096;
constexpr std::string_view kPunctuation = "():,=";

/// True if the text begins with `key=`.
bool is_option(std::string_view text) {
  const auto end = text.find_first_of(kPunctuation);
  return end != std::string_view::npos && text[end] == '=';
}

}  // namespace

std::vector<std::string_view> split_list(std::string_view text) {
  std::vector<std::string_view> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text[i] != ',' || depth > 0 || is_option(text.substr(i + 1))) continue;
    out.push_back(text.substr(begin, i - begin));
    begin = i + 1;
  }
  out.push_back(text.substr(begin));
  return out;
}

std::string print_all(const Options& values, const std::vector<Option>& declared) {
  std::string out;
  for (const auto& o : declared) out += fmt::format("{}{}={}", out.empty() ? ":" : ",", o.name, values.text(o.name));
  return out;
}

std::string print_changed(const Options& values, const std::vector<Option>& declared) {
  std::vector<Option> different;
  std::copy_if(declared.begin(), declared.end(), std::back_inserter(different),
               [&](const auto& o) { return values.text(o.name) != o.default_text(); });
  return print_all(values, different);
}

SpecReader::SpecReader(std::string_view text) : text_(text) {
  if (text.size() > kMaxLength)
    throw UsageError(fmt::format("the spec has {} characters, at most {} are allowed", text.size(), kMaxLength));
}

std::string SpecReader::name() { return std::string(word("a method's name")); }

Given SpecReader::options(const std::string& owner, const std::vector<Option>& declared) {
  Given given{Options(declared), {}};
  if (take(':')) {
    do option(owner, declared, given);
    while (another_option());
  }
  return given;
}

bool SpecReader::take(char c) {
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

void SpecReader::end() const {
  if (at_ < text_.size()) fail(fmt::format("unexpected '{}'", brief(text_.substr(at_, 1))));
}

void SpecReader::fail(const std::string& what) const {
  throw UsageError(fmt::format("spec '{}': {} at character {}", brief(text_), what, at_ + 1));
}

std::string_view SpecReader::word(const char* what) {
  const std::size_t begin = at_;
  at_ = std::min(text_.find_first_of(kPunctuation, begin), text_.size());
  if (at_ == begin) fail(fmt::format("expected {}", what));
  return text_.substr(begin, at_ - begin);
}

void SpecReader::option(const std::string& owner, const std::vector<Option>& declared, Given& given) {
  const std::string key(word("an option's name"));
  if (!take('=')) fail(fmt::format("expected '=' after {}", brief(key)));
  const auto value = word("a value");
  const auto found = std::find_if(declared.begin(), declared.end(), [&](const auto& o) { return o.name == key; });
  if (found == declared.end())
    throw UsageError(fmt::format("{} has no option '{}': {}", owner, brief(key), suggest(key, names_of(declared))));
  if (!given.keys.insert(key).second) fail(fmt::format("{} is given twice", key));
  given.values.set(key, found->check(owner, value));
}

bool SpecReader::another_option() {
  if (at_ == text_.size() || text_[at_] != ',' || !is_option(text_.substr(at_ + 1))) return false;
  ++at_;
  return true;
}

void refuse_unknown(std::string_view what, std::string_view name, const std::vector<std::string>& known) {
  throw UsageError(fmt::format("unknown {} '{}': {}", what, brief(name), suggest(name, known)));
}

}  // namespace winnow::policy
