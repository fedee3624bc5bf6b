// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/needles/wording.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <span>
#include <sstream>
#include <string_view>

#include "base/as_size.h"
#include "eval/tasks/made_up.h"
#include "winnow/error.h"

namespace winnow::eval::needles {

namespace {

constexpr Kind kKinds[] = {{"word", 8},        {"sentence", 48}, {"digits", 12},
                           {"identifier", 28}, {"uuid", 52},     {"code", 24}};

struct Wording {
  std::string_view kind;
  const char* needle;    ///< with {key} and {answer}
  const char* question;  ///< with {key}
};

/// All words of a split.
struct WordLists {
  std::vector<Wording> wordings;
  std::vector<const char*> keys;
  std::vector<const char*> names;  ///< other names for keys
  const char* link;                ///< says that {key} is {name}
  /// Patterns of answers that are sentences, with ADJECTIVE and NOUN. The text before each word occurs once, so that
  /// small models can follow it, and they begin like any sentence.
  std::vector<const char*> sentences;
  std::vector<const char*> calls;  ///< for code: verbs
  std::vector<const char*> objects;
  std::vector<const char*> arguments;
};

const WordLists kTuning = {
    {{"word", "The secret password of the {key} office is {answer}.",
      "According to the text above, what is the secret password of the {key} office?"},
     {"word", "The prize of the {key} lottery is a new {answer}.",
      "According to the text above, what is the prize of the {key} lottery?"},
     {"sentence", "The motto of the city of {key} is: \"{answer}.\"",
      "According to the text above, what is the motto of the city of {key}?"},
     {"sentence", "The first rule of the {key} club is: \"{answer}.\"",
      "According to the text above, what is the first rule of the {key} club?"},
     {"digits", "The special magic number of {key} is {answer}.",
      "According to the text above, what is the special magic number of {key}?"},
     {"digits", "The telephone number of the {key} museum is {answer}.",
      "According to the text above, what is the telephone number of the {key} museum?"},
     {"identifier", "The secret key of the {key} bank is {answer}.",
      "According to the text above, what is the secret key of the {key} bank?"},
     {"identifier", "The tracking code of the parcel to {key} is {answer}.",
      "According to the text above, what is the tracking code of the parcel to {key}?"},
     {"uuid", "The secret key of the {key} bank is {answer}.",
      "According to the text above, what is the secret key of the {key} bank?"},
     {"uuid", "The tracking code of the parcel to {key} is {answer}.",
      "According to the text above, what is the tracking code of the parcel to {key}?"},
     {"code", "The command that restarts the {key} server is {answer}.",
      "According to the text above, what is the command that restarts the {key} server?"},
     {"code", "The bug in the {key} program is the call {answer}.",
      "According to the text above, which call is the bug in the {key} program?"}},
    {"Oslo", "Lisbon", "Nairobi", "Quito", "Hanoi", "Dublin", "Tunis", "Riga", "Bergen", "Lima", "Prague", "Osaka"},
    {"Falcon", "Heron", "Raven", "Osprey", "Condor", "Pelican", "Sparrow", "Magpie"},
    "In the register {key} is listed as {name}.",
    {"The ADJECTIVE NOUN behind our NOUN will stay closed until spring because a ADJECTIVE NOUN must first be repaired",
     "Every visitor who brings a ADJECTIVE NOUN may keep the ADJECTIVE NOUN and also receives one NOUN for free"},
    {"merge", "load", "split", "sort", "send"},
    {"rows", "files", "keys", "maps", "frames"},
    {"alpha", "beta", "gamma", "delta"}};

const WordLists kTest = {
    {{"word", "{key} always carries a small {answer} in one pocket.",
      "In the text above, what does {key} always carry in one pocket?"},
     {"word", "The favorite painting of {key} shows a {answer}.",
      "In the text above, what does the favorite painting of {key} show?"},
     {"sentence", "The last wish of {key} was: \"{answer}.\"", "In the text above, what was the last wish of {key}?"},
     {"sentence", "The favorite saying of {key} is: \"{answer}.\"",
      "In the text above, what is the favorite saying of {key}?"},
     {"digits", "The locker of {key} opens with the number {answer}.",
      "In the text above, which number opens the locker of {key}?"},
     {"digits", "The ticket that {key} bought has the number {answer}.",
      "In the text above, which number does the ticket that {key} bought have?"},
     {"identifier", "The library card of {key} has the identifier {answer}.",
      "In the text above, which identifier does the library card of {key} have?"},
     {"identifier", "The invoice of {key} has the reference {answer}.",
      "In the text above, which reference does the invoice of {key} have?"},
     {"uuid", "The library card of {key} has the identifier {answer}.",
      "In the text above, which identifier does the library card of {key} have?"},
     {"uuid", "The invoice of {key} has the reference {answer}.",
      "In the text above, which reference does the invoice of {key} have?"},
     {"code", "To fix the report, {key} typed {answer} and pressed a button.",
      "In the text above, what did {key} type to fix the report?"},
     {"code", "The function call that {key} recommends is {answer}.",
      "In the text above, which function call does {key} recommend?"}},
    {"Agnes", "Bruno", "Clara", "Dmitri", "Farouk", "Greta", "Ingrid", "Jonas", "Lorenzo", "Miriam", "Nadia", "Tamara"},
    {"Captain", "Duchess", "Professor", "Admiral", "Baron", "Marshal", "Countess", "Bishop"},
    "Among friends {key} goes by the nickname {name}.",
    {"Nobody in this NOUN knows which ADJECTIVE NOUN was left under that ADJECTIVE NOUN last winter when it snowed",
     "Whoever finds that ADJECTIVE NOUN near this NOUN should carry it to some ADJECTIVE NOUN before sunset"},
    {"join", "scan", "push", "trim", "read"},
    {"pages", "lists", "blocks", "tables", "paths"},
    {"left", "right", "upper", "lower"}};

const WordLists& words_of(Split split) { return split == Split::tuning ? kTuning : kTest; }

const char* any_of_words(const std::vector<const char*>& of, Random& random) {
  return of[as_size(random.below(static_cast<int>(of.size())))];
}

/// A noun that "a" may precede, long enough not to be a part of other words.
std::string plain_noun(Split split, Random& random) {
  constexpr std::size_t kShortest = 6;
  for (;;) {
    auto out = made_up_noun(random, split);
    if (out.size() >= kShortest && std::string_view("aeiou").find(out.front()) == std::string_view::npos) return out;
  }
}

std::string sentence(Split split, Random& random) {
  std::string out;
  std::istringstream pattern(any_of_words(words_of(split).sentences, random));
  for (std::string word; pattern >> word;) {
    if (word == "ADJECTIVE") word = made_up_adjective(random, split);
    if (word == "NOUN") word = made_up_noun(random, split);
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

std::string call(Split split, Random& random) {
  const WordLists& words = words_of(split);
  const auto* const verb = any_of_words(words.calls, random);
  const auto* const object = any_of_words(words.objects, random);
  const auto* const argument = any_of_words(words.arguments, random);
  return fmt::format("{}_{}({}, {})", verb, object, argument, 10 + random.below(90));
}

std::string answer_of(std::string_view kind, Split split, Random& random) {
  constexpr std::size_t kIdentifier = 18;  // characters: three groups of a UUID
  if (kind == "word") return plain_noun(split, random);
  if (kind == "sentence") return sentence(split, random);
  if (kind == "digits") return made_up_number(random);
  if (kind == "code") return call(split, random);
  return kind == "uuid" ? made_up_uuid(random) : made_up_uuid(random).substr(0, kIdentifier);
}

const Wording& wording_of(std::string_view kind, const WordLists& words, Random& random) {
  std::vector<const Wording*> of_kind;
  for (const auto& wording : words.wordings) {
    if (wording.kind == kind) of_kind.push_back(&wording);
  }
  return *of_kind[as_size(random.below(static_cast<int>(of_kind.size())))];
}

std::vector<std::string> distinct(const std::vector<const char*>& of, int count, Random& random) {
  std::vector<std::string> out;
  for (const int i : random.distinct(count, static_cast<int>(of.size()))) out.emplace_back(of[as_size(i)]);
  return out;
}

std::vector<std::string> different_answers(const Kind& kind, int count, Split split, Random& random) {
  std::vector<std::string> out;
  while (out.size() < as_size(count)) {
    auto answer = answer_of(kind.name, split, random);
    if (std::find(out.begin(), out.end(), answer) == out.end()) out.push_back(std::move(answer));
  }
  return out;
}

/// "Agnes", "Agnes and Bruno", "Agnes, Bruno and Clara"
std::string enumerated(std::span<const std::string> keys) {
  const auto others = keys.first(keys.size() - 1);
  return others.empty() ? keys.back() : fmt::format("{} and {}", fmt::join(others, ", "), keys.back());
}

std::string with_key(std::string_view wording, const std::string& key) {
  return fmt::format(fmt::runtime(wording), fmt::arg("key", key));
}

int count_alike(Shape shape) {
  constexpr int kCounts[] = {1, 4, 2, 3};
  return kCounts[static_cast<int>(shape)];
}

}  // namespace

const Kind& kind_of(const std::string& name) {
  std::vector<const char*> all;
  for (const auto& kind : kKinds) {
    if (name == kind.name) return kind;
    all.push_back(kind.name);
  }
  throw UsageError(fmt::format("there is no kind of answer {} (there are {})", name, fmt::join(all, ", ")));
}

Hidden made_up(Shape shape, const Kind& kind, Split split, Random& random) {
  const WordLists& words = words_of(split);
  const int count = count_alike(shape);
  const Wording& wording = wording_of(kind.name, words, random);
  const auto answers = different_answers(kind, count, split, random);
  const auto keys = distinct(words.keys, count, random);
  const auto names = shape == Shape::hop ? distinct(words.names, count, random) : keys;
  Hidden out;
  for (std::size_t i = 0; i < names.size(); ++i)
    out.sentences.push_back(
        fmt::format(fmt::runtime(wording.needle), fmt::arg("key", names[i]), fmt::arg("answer", answers[i])));
  for (std::size_t i = 0; shape == Shape::hop && i < names.size(); ++i)
    out.sentences.push_back(
        fmt::format(fmt::runtime(words.link), fmt::arg("key", keys[i]), fmt::arg("name", names[i])));
  const std::size_t asked_for = shape == Shape::several ? keys.size() : 1;
  const auto asked = enumerated(std::span(keys).first(asked_for));
  out.question = with_key(wording.question, asked);
  const std::string_view needle = wording.needle;
  out.begun = with_key(needle.substr(0, needle.find_last_not_of(' ', needle.find("{answer}") - 1) + 1), asked);
  out.answers.assign(answers.begin(), answers.begin() + static_cast<std::ptrdiff_t>(asked_for));
  return out;
}

}  // namespace winnow::eval::needles
