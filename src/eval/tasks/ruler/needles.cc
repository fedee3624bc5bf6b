// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <sstream>

#include "base/as_size.h"
#include "eval/tasks/made_up.h"
#include "eval/tasks/ruler/prompts.h"
#include "eval/tasks/texts.h"

namespace winnow::eval::ruler {

namespace {

enum class Haystack : std::uint8_t { noise, essay, needles };
enum class Kind : std::uint8_t { words, numbers, uuids };

struct Shape {
  const char* name;
  Haystack haystack;
  Kind key;
  Kind value;
  int keys = 1;
  int values = 1;   ///< for each key
  int queries = 1;  ///< keys that are asked for
};

constexpr Shape kNeedleShapes[] = {
    {"niah_single_1", Haystack::noise, Kind::words, Kind::numbers},
    {"niah_single_2", Haystack::essay, Kind::words, Kind::numbers},
    {"niah_single_3", Haystack::essay, Kind::words, Kind::uuids},
    {"niah_multikey_1", Haystack::essay, Kind::words, Kind::numbers, 4},
    {"niah_multikey_2", Haystack::needles, Kind::words, Kind::numbers},
    {"niah_multikey_3", Haystack::needles, Kind::uuids, Kind::uuids},
    {"niah_multivalue", Haystack::essay, Kind::words, Kind::numbers, 1, 4},
    {"niah_multiquery", Haystack::essay, Kind::words, Kind::numbers, 4, 1, 4},
};

using Texts = std::vector<std::string>;

const char* plural(Kind kind) { return kind == Kind::words ? "words" : kind == Kind::numbers ? "numbers" : "uuids"; }

std::string any_of_kind(Kind kind, Random& random) {
  return kind == Kind::words     ? made_up_word(random)
         : kind == Kind::numbers ? made_up_number(random)
                                 : made_up_uuid(random);
}

std::string needle(Kind kind, const std::string& key, const std::string& value) {
  return fmt::format("One of the special magic {} for {} is: {}.", plural(kind), key, value);
}

Texts words_in(const std::string& text) {
  Texts out;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

/// Sentences of a text's first `count` words. A text that is too short is repeated.
Texts sentences(const Texts& words, int count) {
  Texts out(1);
  for (int i = 0; i < count; ++i) {
    const auto& word = words[as_size(i) % words.size()];
    if (!out.back().empty()) out.back() += ' ';
    out.back() += word;
    if (i + 1 < count && std::string(".?!").find(word.back()) != std::string::npos) out.emplace_back();
  }
  return out;
}

/// Inserts needles between sentences, at depths drawn from 40.
std::string hide_in_essay(Texts all, const Texts& needles, Random& random) {
  constexpr int kDepths = 40;
  auto depths = random.distinct(static_cast<int>(needles.size()), kDepths);
  std::sort(depths.begin(), depths.end());
  const auto count = static_cast<double>(all.size());
  for (std::size_t i = needles.size(); i-- > 0;) {
    const double percent = std::round(100.0 * depths[i] / (kDepths - 1));
    all.insert(all.begin() + static_cast<std::ptrdiff_t>(count * percent / 100), needles[i]);
  }
  return join(all, " ");
}

std::string hide_in_lines(Texts all, const Texts& needles, Random& random) {
  auto places = random.distinct(static_cast<int>(needles.size()), static_cast<int>(all.size()));
  std::sort(places.rbegin(), places.rend());
  for (std::size_t i = 0; i < needles.size(); ++i) all.insert(all.begin() + places[i], needles[i]);
  return join(all, "\n");
}

std::string hide_needles(const Shape& shape, const Texts& essay, const Texts& needles, int units, Random& random) {
  if (shape.haystack == Haystack::essay) return hide_in_essay(sentences(essay, units), needles, random);
  Texts lines(as_size(units), kNoise);
  if (shape.haystack == Haystack::needles) {
    for (auto& line : lines) {
      const auto key = any_of_kind(shape.key, random);
      line = needle(shape.value, key, any_of_kind(shape.value, random));
    }
  }
  return hide_in_lines(std::move(lines), needles, random);
}

/// "a", "a, and b", "a, b, and c".
std::string enumerate(const Texts& all) {
  if (all.size() == 1) return all.front();
  return fmt::format("{}, and {}", fmt::join(all.begin(), all.end() - 1, ", "), all.back());
}

void ask(const Shape& shape, const std::string& context, const std::string& query, Made& to) {
  if (shape.queries * shape.values == 1) {
    const std::string kind = std::string(plural(shape.value)).substr(0, std::string(plural(shape.value)).size() - 1);
    to.text = fmt::format(
        "A special magic {0} is hidden within the following text. Make sure to memorize it. I will quiz you about the "
        "{0} afterwards.\n{1}",
        kind, context);
    to.question = fmt::format("\nWhat is the special magic {0} for {1} mentioned in the provided text?", kind, query);
    to.begun = fmt::format(" The special magic {0} for {1} mentioned in the provided text is", kind, query);
  } else {
    to.text = fmt::format(
        "Some special magic {0} are hidden within the following text. Make sure to memorize it. I will quiz you about "
        "the {0} "
        "afterwards.\n{1}",
        plural(shape.value), context);
    to.question = fmt::format("\nWhat are all the special magic {0} for {1} mentioned in the provided text?",
                              plural(shape.value), query);
    to.begun =
        fmt::format(" The special magic {0} for {1} mentioned in the provided text are", plural(shape.value), query);
  }
}

Made make_needles_of(const Shape& shape, const Texts& essay, int units, Random& random) {
  Made out;
  Texts keys;
  Texts needles;
  std::vector<Texts> values;
  for (int k = 0; k < shape.keys; ++k) {
    keys.push_back(any_of_kind(shape.key, random));
    auto& of_key = values.emplace_back();
    for (int v = 0; v < shape.values; ++v) {
      of_key.push_back(any_of_kind(shape.value, random));
      needles.push_back(needle(shape.value, keys.back(), of_key.back()));
    }
  }
  random.shuffle(needles);
  Texts asked;
  for (const int k : random.distinct(shape.queries, shape.keys)) {
    const auto& answers = values[k];
    asked.push_back(keys[k]);
    out.answers.insert(out.answers.end(), answers.begin(), answers.end());
  }
  ask(shape, hide_needles(shape, essay, needles, units, random), enumerate(asked), out);
  return out;
}

}  // namespace

std::string join(const std::vector<std::string>& parts, const std::string& between) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) out += (i > 0 ? between : "") + parts[i];
  return out;
}

void add_needles(std::vector<Type>& to) {
  for (const auto& shape : kNeedleShapes) {
    const bool essay = shape.haystack == Haystack::essay;
    to.push_back({shape.name, 128, shape.keys * shape.values, essay ? "needle" : "", Metric::contains_all,
                  [&shape, essay](const TaskOptions& options, int) -> Maker {
                    const auto words =
                        essay ? words_in(read_folder(std::filesystem::path(options.data) / "needle")) : Texts();
                    return [&shape, words](int units, Random random, int) {
                      return make_needles_of(shape, words, units, random);
                    };
                  }});
  }
}

}  // namespace winnow::eval::ruler
