// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/as_size.h"
#include "eval/tasks/made_up.h"
#include "eval/tasks/ruler/prompts.h"

namespace winnow::eval::ruler {

namespace {

constexpr int kVariables = 5;  // one chain of four hops

struct Chain {
  std::vector<std::string> names;
  std::string value;
  std::string context;
};

Chain chain_in_noise(Random& random, int letters, int units) {
  Chain out;
  while (static_cast<int>(out.names.size()) < kVariables) {
    const auto name = made_up_letters(random, letters, 'A');
    if (std::find(out.names.begin(), out.names.end(), name) == out.names.end()) out.names.push_back(name);
  }
  out.value = std::to_string(10000 + random.below(90000));
  std::vector<std::string> lines(units, kNoise);
  auto places = random.distinct(kVariables, units);
  std::sort(places.begin(), places.end());
  for (int i = 0; i < kVariables; ++i) {
    const auto n = as_size(i);
    const std::string line = i == 0 ? fmt::format("VAR {} = {}", out.names[0], out.value)
                                    : fmt::format("VAR {} = VAR {} ", out.names[n], out.names[n - 1]);
    lines.insert(lines.begin() + places[n] + i, line);
  }
  out.context = join(lines, "\n");
  return out;
}

std::string told(const Chain& chain) {
  return "Memorize and track the chain(s) of variable assignment hidden in the following text.\n\n" + chain.context;
}

std::string asked(const Chain& chain) {
  return fmt::format("\nQuestion: Find all variables that are assigned the value {0} in the text above.", chain.value);
}

std::string begun(const Chain& chain) {
  return fmt::format(
      " Answer: According to the chain(s) of variable assignment in the text above, {1} variables are assigned the "
      "value {0}, they are: ",
      chain.value, kVariables);
}

/// A chain after an example of about 500 tokens with shorter names.
Made make_chains(int units, Random& random) {
  constexpr int kLetters = 5;
  constexpr int kExampleLetters = 3;
  constexpr int kExampleUnits = 10;
  const Chain example = chain_in_noise(random, kExampleLetters, kExampleUnits);
  const Chain chain = chain_in_noise(random, kLetters, units);
  const std::string shown = told(example) + asked(example) + begun(example) + " " + join(example.names, " ");
  return {shown + "\n\n" + told(chain), asked(chain), begun(chain), chain.names};
}

}  // namespace

void add_chains(std::vector<Type>& to) {
  to.push_back({"vt", 30, kVariables, "", Metric::contains_all, [](const TaskOptions&, int) -> Maker {
                  return [](int units, Random random, int) { return make_chains(units, random); };
                }});
}

}  // namespace winnow::eval::ruler
