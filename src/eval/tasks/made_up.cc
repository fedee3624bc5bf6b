// SPDX-License-Identifier: Apache-2.0
#include "eval/tasks/made_up.h"

#include <spdlog/fmt/fmt.h>

#include <sstream>

#include "base/as_size.h"
#include "winnow/error.h"

namespace winnow::eval {

namespace {

constexpr const char* kAdjectives =
    "able amber ancient angry autumn awake bitter blank bold brave brief bright brisk broad broken bronze busy calm "
    "careful cheap clean "
    "clear "
    "clever cloudy coarse cold common complete copper crimson crisp curious daily damp dark dear deep dense dim "
    "distant double dry dull "
    "eager early eastern easy elder empty equal even exact faint fair faithful famous fancy fast feeble fierce final "
    "fine firm flat foggy "
    "fond foreign formal free fresh full funny gentle giant glad golden grand grateful grave gray great green grim "
    "happy harsh heavy "
    "helpful "
    "hidden hollow honest huge humble hungry icy idle inner jolly keen kind large late lazy lean light little lively "
    "lone long loose loud "
    "loyal lucky mellow mild minor modern modest narrow native neat nervous noble noisy northern odd old open orderly "
    "outer pale patient "
    "plain pleasant polite poor precise pretty prime proud pure quick quiet rapid rare ready rich rough round royal "
    "rustic sad safe salty "
    "scarlet secret shallow sharp short shy silent silver simple sleepy slow small smooth soft solid sour southern "
    "spare stale steady "
    "steep "
    "stiff still strange strict strong sturdy sudden sweet swift tall tame tender thick thin tidy tiny tough vast "
    "vivid warm weary western "
    "wet wild wise wooden young";

constexpr const char* kNouns =
    "acorn actor airport album anchor ankle apron arrow artist aunt badge baker balloon banjo barrel basket beach "
    "beaver bell bench berry "
    "bicycle blanket blossom bottle bridge broom bucket butcher butter button cabin candle canoe canyon captain carpet "
    "castle cathedral "
    "cellar "
    "chalk cherry chimney circus clock cloud coat coffee comet compass copperhead corner cottage cotton cousin cradle "
    "crater cricket crown "
    "curtain dancer desert diamond doctor dolphin donkey drawer driver drum eagle earring elbow engine envelope falcon "
    "farmer feather "
    "fence "
    "ferry fiddle finger flag flute forest fountain fox garden garlic gate giraffe glacier glove goat guitar hammer "
    "harbor harvest hat "
    "hedge "
    "helmet heron honey horse hotel island jacket jar jewel judge kettle kitchen kite ladder lake lamp lantern lawyer "
    "leaf lemon letter "
    "library lizard magnet mango map marble market meadow medal melon mirror monkey morning mountain museum mushroom "
    "napkin needle nephew "
    "nickel notebook nurse ocean olive onion orchard orchestra otter oven owl oyster paddle painter palace parade "
    "parrot peach pebble "
    "pencil "
    "pepper piano picnic pigeon pillow pilot pirate planet plate plum pocket poet pond potato pumpkin puppet rabbit "
    "radish raven ribbon "
    "river "
    "rocket roof rope saddle sailor salad sandal scarf school scissors shadow sheep shelf ship shovel shower singer "
    "skate slipper snail "
    "soap "
    "soldier spider spoon stable statue stove street sugar summer sweater table tailor teacher temple thimble thunder "
    "ticket tiger tower "
    "tractor trumpet tulip turtle umbrella uncle valley village violin wagon walnut whale wheat whistle window winter "
    "wizard wolf zebra";

std::vector<std::string> split_words(const char* text) {
  std::vector<std::string> out;
  std::istringstream stream(text);
  for (std::string word; stream >> word;) out.push_back(word);
  return out;
}

const std::vector<std::string>& adjectives() {
  static const auto out = split_words(kAdjectives);
  return out;
}

const std::vector<std::string>& nouns() {
  static const auto out = split_words(kNouns);
  return out;
}

/// The adjectives, followed by the nouns.
const std::string& single(int number) {
  const auto i = as_size(number);
  return i < adjectives().size() ? adjectives()[i] : nouns()[i - adjectives().size()];
}

std::string pair(int number) {
  const auto i = as_size(number);
  return adjectives()[i / nouns().size()] + "-" + nouns()[i % nouns().size()];
}

/// A word of a split. The words of one split are every other word.
const std::string& of_half(const std::vector<std::string>& words, Split split, Random& random) {
  const auto half = as_size(random.below(static_cast<int>(words.size() / 2)));
  return words[2 * half + (split == Split::tuning ? 0 : 1)];
}

int count_singles() { return static_cast<int>(adjectives().size() + nouns().size()); }

int count_pairs() { return static_cast<int>(adjectives().size() * nouns().size()); }

}  // namespace

std::string made_up_number(Random& random) { return std::to_string(1000000 + random.below(9000000)); }

std::string made_up_uuid(Random& random) {
  const std::uint64_t high = (random.next() & ~0xF000ULL) | 0x4000U;
  const std::uint64_t low = (random.next() & ~(3ULL << 62)) | (1ULL << 63);
  return fmt::format("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF, low >> 48,
                     low & 0xFFFFFFFFFFFFULL);
}

std::string made_up_word(Random& random) { return pair(random.below(count_pairs())); }

std::string made_up_noun(Random& random, Split split) { return of_half(nouns(), split, random); }

std::string made_up_adjective(Random& random, Split split) { return of_half(adjectives(), split, random); }

std::string made_up_letters(Random& random, int count, char first_letter) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>(first_letter + random.below(26));
  return out;
}

std::vector<std::string> made_up_words(Random& random, int count) {
  std::vector<std::string> out;
  if (count > count_pairs())
    throw InputError(fmt::format("{} different words are needed, but only {} can be generated", count, count_pairs()));
  if (count <= count_singles()) {
    for (const int i : random.distinct(count, count_singles())) out.push_back(single(i));
  } else {
    for (const int i : random.distinct(count, count_pairs())) out.push_back(pair(i));
  }
  return out;
}

std::vector<int> depths_of(const TaskOptions& options) {
  return options.depths.empty() ? std::vector{0, 25, 50, 75, 100} : options.depths;
}

std::vector<Sample> make_up(const TaskOptions& options, int usual,
                            const std::function<Sample(std::uint32_t seed, int number)>& one) {
  std::vector<Sample> out;
  for (const std::uint32_t seed : options.seeds) {
    for (int i = 0; i < (options.limit > 0 ? options.limit : usual); ++i) {
      auto& sample = out.emplace_back(one(seed, i));
      if (seed != 1) sample.id += fmt::format("-seed{}", seed);
    }
  }
  return out;
}

Task task_by_length(const TaskOptions& options, const std::vector<int>& usual,
                    const std::function<std::vector<Sample>(int length)>& samples_of) {
  Task out;
  out.measure = answering();
  for (const int length : options.lengths.empty() ? usual : options.lengths) {
    const auto more = samples_of(length);
    out.samples.insert(out.samples.end(), more.begin(), more.end());
  }
  return out;
}

}  // namespace winnow::eval
