#include "policy/options.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <charconv>
#include <numeric>
#include <stdexcept>

#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::policy {

namespace {

template <class... F>
struct Overloaded : F... {
  using F::operator()...;
};
template <class... F>
Overloaded(F...) -> Overloaded<F...>;

template <class T>
bool read(std::string_view text, T& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size();
}

/// Reads back what check() has passed. Not by atoi or strtod: those follow the program's locale.
template <class T>
T read_checked(const std::string& text) {
  T value = 0;
  if (!read(text, value)) throw std::logic_error("the option's value '" + text + "' is no number");
  return value;
}

/// Levenshtein distance.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({replace, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::string Option::default_text() const {
  return std::visit([](const auto& option) { return fmt::format("{}", option.value); }, kind);
}

std::string Option::range_text() const {
  return std::visit(
      Overloaded{[](const Choice& c) { return fmt::format("{}", fmt::join(c.all, "|")); },
                 [](const WordOrInteger& n) { return fmt::format("{} or {} to {}", n.value, n.least, n.most); },
                 [](const auto& n) { return fmt::format("{} to {}", n.least, n.most); }},
      kind);
}

std::string Option::check(std::string_view owner, std::string_view text) const {
  const auto refuse = [&] {
    return UsageError(fmt::format("{}: {}={} is not possible: it takes {}", owner, name, brief(text), range_text()));
  };
  const auto whole = [&](int least, int most) {
    int value = 0;
    if (!read(text, value) || value < least || value > most) throw refuse();
    return fmt::format("{}", value);
  };
  return std::visit(
      Overloaded{[&](const Integer& n) { return whole(n.least, n.most); },
                 [&](const WordOrInteger& n) { return text == n.value ? n.value : whole(n.least, n.most); },
                 [&](const Number& n) {
                   double value = 0;
                   if (!read(text, value) || !(value >= n.least && value <= n.most)) throw refuse();
                   return fmt::format("{}", value == 0 ? 0.0 : value);  // no -0
                 },
                 [&](const Choice& c) {
                   if (std::find(c.all.begin(), c.all.end(), text) == c.all.end()) throw refuse();
                   return std::string(text);
                 }},
      kind);
}

Options::Options(const std::vector<Option>& declared) {
  for (const auto& option : declared) values_[option.name] = option.default_text();
}

int Options::integer(const std::string& name) const { return read_checked<int>(text(name)); }
std::optional<int> Options::integer_if(const std::string& name) const {
  int value = 0;
  return read(text(name), value) ? std::optional(value) : std::nullopt;
}
double Options::number(const std::string& name) const { return read_checked<double>(text(name)); }

std::string suggest(std::string_view name, const std::vector<std::string>& known) {
  if (known.empty()) return "there are none";
  const auto nearest = std::min_element(
      known.begin(), known.end(), [&](const auto& a, const auto& b) { return distance(name, a) < distance(name, b); });
  return fmt::format("did you mean {}? There are {}", *nearest, fmt::join(known, ", "));
}

}  // namespace winnow::policy
