// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <map>
#include <numeric>

#include "policy/fake_layer.h"

namespace winnow::test {
namespace {

using namespace reference;
using Vector = std::vector<double>;

struct Settings {
  int window = 8;
  double gamma = 4;
  double tau = 0.1;
  std::string rows = "sum";
  std::string gqa = "mean";
  std::string score = "glo-loc";
  std::string similarity = "kv";
  bool clamp = false;
  bool rotated = false;
  bool follows = true;
  int window_share = 0;  ///< percent of the prompt to which a longer window is reduced; 0: `window` is used as it is
};

std::string spec_of(const Settings& s) {
  const auto window =
      s.window_share == 0 ? std::to_string(s.window) : "32,window-share=" + std::to_string(s.window_share);
  return "ems:window=" + window + ",gamma=" + std::to_string(s.gamma) + ",tau=" + std::to_string(s.tau) +
         ",kernel=3,rows=" + s.rows + ",gqa=" + s.gqa + ",score=" + s.score + ",similarity=" + s.similarity +
         ",clamp=" + (s.clamp ? "on" : "off") + ",redundancy=" + (s.rotated ? "rotated" : "raw") +
         ",positions=" + (s.follows ? "kept" : "merged");
}

double length(const Vector& x) { return std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0)); }

double cosine(const Vector& a, const Vector& b) {
  const double lengths = length(a) * length(b);
  return lengths > 0 ? std::inner_product(a.begin(), a.end(), b.begin(), 0.0) / lengths : 0;
}

Vector turned(Vector key, int positions) {
  const auto& rope = FakeLayer::rope();
  for (std::size_t i = 0; i < rope.frequency.size(); ++i) {
    const double angle = static_cast<double>(rope.frequency[i]) * positions;
    const double x = key[2 * i];
    const double y = key[2 * i + 1];
    key[2 * i] = x * std::cos(angle) - y * std::sin(angle);
    key[2 * i + 1] = x * std::sin(angle) + y * std::cos(angle);
  }
  return key;
}

/// One KV head as in docs/methods.md: local tokens, and a table of entries, each in a class that has its centre's
/// position as its name.
struct Reference {
  struct Entry {
    int centre;
    double norm;
    double all;
    double past;
    double current;
  };
  struct Class {
    Vector direction;
    Vector value;
  };

  Reference(const FakeLayer& layer, int head, int budget, const Settings& settings, int more)
      : layer_(layer),
        head_(head),
        group_(layer.group(head, more)),
        budget_(budget),
        s_(settings),
        last_(layer.tokens() - 1) {
    const int n = layer.tokens();
    for (int j = 0; j < n; ++j) enter(j);
    std::vector<Vector> all;
    std::vector<Vector> local;
    for (const auto& a : group_) {
      all.push_back(column_sums(a, 0, n, n));
      local.push_back(column_sums(a, std::max(0, n - s_.window), n, n));
      for (int j = 0; j < n && s_.rows == "max"; ++j) {
        local.back()[z(j)] = 0;
        for (int i = std::max(0, n - s_.window); i < n; ++i)
          local.back()[z(j)] = std::max(local.back()[z(j)], a[z(i)][z(j)]);
      }
    }
    for (int j = 0; j < n; ++j) {
      entries_[j].all = combined(all, s_.gqa)[z(j)];
      entries_[j].past = combined(local, s_.gqa)[z(j)];
    }
    if (n > budget) compress();
  }

  void compress() {
    const int n = layer_.tokens();
    Vector evictable;
    for (int j = 0; j < n - s_.window; ++j) evictable.push_back(score(entries_.at(j)));
    const auto s = pooled(evictable, 3, "mean", "valid");
    const auto order = ranking(s);
    const int centres = budget_ - s_.window;
    const int merged =
        static_cast<int>(std::min(std::floor((s_.gamma - 1) * budget_), static_cast<double>(n - budget_)));
    const auto before = classes_;
    for (int i = centres; i < n - s_.window; ++i) {
      int best = -1;
      for (int c = 0; c < centres && i < centres + merged; ++c) {
        if (best < 0 || alike(before, order[i], order[c]) > alike(before, order[i], best)) best = order[c];
      }
      if (best < 0 || alike(before, order[i], best) < s_.tau) {
        entries_.erase(order[i]);
      } else {
        entries_[order[i]].centre = best;
      }
      classes_.erase(order[i]);
    }
    for (int c = 0; c < centres; ++c) {
      const int centre = order[c];
      std::vector<std::pair<double, Class>> members;
      for (const auto& [j, entry] : entries_) {
        if (entry.centre == centre) members.emplace_back(s[j], before.at(j));
      }
      if (members.size() > 1) classes_[centre] = mean(members);
    }
    if (s_.follows) return;
    std::erase_if(entries_, [](const auto& entry) { return entry.second.centre != entry.first; });
  }

  void step() {
    ++last_;
    enter(last_);
    for (auto& [j, entry] : entries_) {
      for (const auto& a : group_) {
        const double p = a[last_][j] / static_cast<double>(group_.size());
        entry.all += p;
        entry.current += p;
      }
    }
    if (static_cast<int>(classes_.size()) > budget_) give_up();
    while (static_cast<int>(entries_.size() - classes_.size()) > std::floor((s_.gamma - 1) * budget_)) trim();
    if ((last_ - layer_.tokens() + 1) % s_.window != 0) return;
    for (auto& [j, entry] : entries_) {
      entry.past = entry.current;
      entry.current = 0;
    }
  }

  void give_up() {
    int least = -1;
    for (const auto& [j, unused] : classes_) {
      if (j > last_ - s_.window) continue;
      if (least < 0 || score(entries_.at(j)) < score(entries_.at(least))) least = j;
    }
    int best = -1;
    for (const auto& [j, unused] : classes_) {
      if (j > last_ - s_.window || j == least) continue;
      if (best < 0 || alike(classes_, least, j) > alike(classes_, least, best)) best = j;
    }
    const bool joins = best >= 0 && s_.gamma > 1 && alike(classes_, least, best) >= s_.tau;
    if (joins) {
      classes_[best] = mean({{class_score(best), classes_.at(best)}, {class_score(least), classes_.at(least)}});
      for (auto& [j, entry] : entries_) {
        if (entry.centre == least) entry.centre = best;
      }
      if (!s_.follows) entries_.erase(least);
    } else {
      std::erase_if(entries_, [least](const auto& entry) { return entry.second.centre == least; });
    }
    classes_.erase(least);
  }

  void trim() {
    int least = -1;
    for (const auto& [j, entry] : entries_) {
      if (entry.centre != j && (least < 0 || score(entry) < score(entries_.at(least)))) least = j;
    }
    entries_.erase(least);
  }

  void enter(int j) {
    const auto row = layer_.token(j);
    const auto at = row.begin() + head_ * FakeLayer::kDim;
    const auto value = at + static_cast<std::ptrdiff_t>(row.size() / 2);
    Vector key = turned({at, at + FakeLayer::kDim}, -j);
    const double norm = length(key);
    for (double& x : key) x /= norm;
    classes_[j] = {key, {value, value + FakeLayer::kDim}};
    entries_[j] = {j, norm, 0, 0, 0};
  }

  double score(const Entry& entry) const {
    double all = 0;
    double local = 0;
    for (const auto& [j, e] : entries_) {
      all += e.all;
      local += e.past + e.current;
    }
    const double own = entry.past + entry.current;
    if (s_.score == "loc") return own;
    return s_.score == "glo" ? entry.all : std::max(entry.all * local / all, own);
  }
  double class_score(int centre) const {
    double sum = 0;
    for (const auto& [j, entry] : entries_) sum += entry.centre == centre ? score(entry) : 0;
    return sum;
  }
  double alike(const std::map<int, Class>& classes, int a, int b) const {
    const auto& x = classes.at(a);
    const auto& y = classes.at(b);
    double keys =
        s_.rotated ? cosine(turned(x.direction, a), turned(y.direction, b)) : cosine(x.direction, y.direction);
    double values = cosine(x.value, y.value);
    if (s_.clamp) keys = std::max(0.0, keys), values = std::max(0.0, values);
    return s_.similarity == "key" ? keys : s_.similarity == "value" ? values : keys * values;
  }
  static Class mean(const std::vector<std::pair<double, Class>>& members) {
    double sum = 0;
    for (const auto& [weight, unused] : members) sum += weight;
    Class out{Vector(FakeLayer::kDim), Vector(FakeLayer::kDim)};
    for (const auto& [weight, member] : members) {
      const double share = sum > 0 ? weight / sum : 1.0 / static_cast<double>(members.size());
      for (std::size_t i = 0; i < out.value.size(); ++i) {
        out.direction[i] += share * member.direction[i];
        out.value[i] += share * member.value[i];
      }
    }
    const double norm = length(out.direction);
    for (double& x : out.direction) x /= norm;
    return out;
  }

  const FakeLayer& layer_;
  int head_;
  std::vector<Matrix> group_;
  int budget_;
  Settings s_;
  int last_;
  std::map<int, Entry> entries_;
  std::map<int, Class> classes_;
};

/// Contents of a lane: each entry's key before RoPE and its value, by position.
std::map<int, std::pair<std::vector<float>, std::vector<float>>> table_of(const cache::LayerLanes& lanes, int head) {
  std::map<int, std::pair<std::vector<float>, std::vector<float>>> out;
  std::vector<float> key(FakeLayer::kDim);
  std::vector<float> value(FakeLayer::kDim);
  const auto read = [&](int slot, int position, float scale) {
    lanes.key(head, slot, key);
    lanes.value(head, slot, value);
    if (!lanes.is_unrotated(head)) FakeLayer::rope().shift(key.data(), -position);
    for (float& x : key) x *= scale;
    out[position] = {key, value};
  };
  for (int slot = 0; slot < lanes.length(head); ++slot) read(slot, lanes.position(head, slot), 1);
  const auto& merged_entries = lanes.merged_entries(head);
  for (std::size_t i = 0; i < z(merged_entries.count()); ++i)
    read(merged_entries.slots()[i], merged_entries.positions()[i], merged_entries.scales()[i]);
  return out;
}

void expect_same(const cache::LayerLanes& lanes, int head, const Reference& expected, const std::string& what) {
  std::vector<int> centres;
  for (int slot = 0; slot < lanes.length(head); ++slot) centres.push_back(lanes.position(head, slot));
  std::sort(centres.begin(), centres.end());
  std::vector<int> wanted;
  for (const auto& [j, unused] : expected.classes_) wanted.push_back(j);
  ASSERT_EQ(centres, wanted) << what;
  const auto table = table_of(lanes, head);
  ASSERT_EQ(table.size(), expected.entries_.size()) << what;
  for (const auto& [j, entry] : expected.entries_) {
    ASSERT_TRUE(table.contains(j)) << what << ": entry " << j;
    const auto& [key, value] = table.at(j);
    const auto& wanted_class = expected.classes_.at(entry.centre);
    // Vectors of length at most 6 are rounded to f32 after each of at most 230 merges, and keys are un-rotated once.
    for (std::size_t c = 0; c < key.size(); ++c) {
      ASSERT_NEAR(key[c], entry.norm * wanted_class.direction[c], 230 * 4 * 6 * 0x1p-24) << what << ": entry " << j;
      ASSERT_NEAR(value[c], wanted_class.value[c], 230 * 4 * 6 * 0x1p-24) << what << ": entry " << j;
    }
  }
}

void follow_reference(const Settings& settings, int budget, int tokens, const Attention& attention) {
  constexpr int kSteps = 200;
  const FakeLayer layer(2, 2, tokens, attention);
  FakeDecode decode(layer, spec_of(settings), budget);
  Reference expected(layer, 1, budget, settings, kSteps);
  for (int i = 0; i <= kSteps; ++i) {
    const std::string what = spec_of(settings) + " @ " + std::to_string(budget) + " step " + std::to_string(i);
    expect_same(decode.lanes(), 1, expected, what);
    if (testing::Test::HasFatalFailure()) return;
    ASSERT_LE(decode.lanes().length(1), budget) << what;
    ASSERT_LE(decode.lanes().entries(1), settings.gamma * budget) << what;
    decode.step();
    if (i < kSteps) expected.step();
  }
}

TEST(Ems, keeps_and_merges_what_the_reference_does_for_200_steps) {
  for (const int budget : {9, 20, 31, 60, 90}) {
    for (const double gamma : {1.0, 1.5, 4.0, 100.0}) {
      Settings settings;
      settings.gamma = gamma;
      follow_reference(settings, budget, 60, random_attention(4));
    }
  }
}

TEST(Ems, follows_the_reference_with_every_switch) {
  std::vector<Settings> all(11);
  all[0].score = "glo";
  all[1].score = "loc";
  all[2].similarity = "key";
  all[3].similarity = "value";
  all[4].clamp = true;
  all[5].rotated = true;
  all[6].follows = false;
  all[7].tau = 0.6;
  all[8].tau = -1;  // all entries are similar enough
  all[9].rows = "max";
  all[10].gqa = "max";
  for (const auto& settings : all) follow_reference(settings, 24, 80, random_attention(6));
}

TEST(Ems, the_window_is_at_most_its_share_of_the_prompt) {
  Settings settings;
  settings.window = 5;
  settings.window_share = 7;  // percent of 80 tokens
  follow_reference(settings, 6, 80, random_attention(6));
}

TEST(Ems, follows_the_reference_where_ties_decide_who_is_kept) {
  Settings settings;
  settings.gamma = 2;
  for (const auto& [name, attention] : attentions()) {
    if (std::string(name) == "zero" || std::string(name) == "random") continue;
    follow_reference(settings, 24, 80, attention);
  }
}

TEST(Ems, merges_by_equal_weights_where_nothing_is_attended_to) {
  Settings settings;
  settings.tau = -1;
  const FakeLayer layer(1, 1, 40, [](int, int, int) { return 0.0; });
  const FakeDecode decode(layer, spec_of(settings), 9);
  const auto table = table_of(decode.lanes(), 0);
  // One centre and its 27 merged entries.
  ASSERT_EQ(table.size(), 9U + 27U);
  Vector mean(FakeLayer::kDim);
  for (const auto& [j, unused] : table) {
    if (j >= 32) continue;
    const auto row = layer.token(j);
    for (std::size_t c = 0; c < mean.size(); ++c) mean[c] += row[FakeLayer::kDim + c] / 28;
  }
  const int centre = decode.lanes().position(0, 0);
  for (std::size_t c = 0; c < mean.size(); ++c) EXPECT_NEAR(table.at(centre).second[c], mean[c], 28 * 4 * 0x1p-24);
}

/// Comparisons of keys and lengths of merged keys ignore the magnitude of the rotated dimensions.
TEST(Ems, a_magnitude_of_some_dimensions_does_not_count) {
  const int rotated = FakeLayer::rope().rotated_dims();
  const FakeLayer plain(2, 3, 70, random_attention(8), 5);
  const FakeLayer stretched(2, 3, 70, random_attention(8), 5, 4);
  for (const char* spec : {"ems:window=8,tau=0.3", "ems:window=8,tau=0.3,similarity=key,redundancy=rotated"}) {
    FakeDecode expected(plain, spec, 24);
    FakeDecode decode(stretched, spec, 24);
    for (int i = 0; i < 60; ++i) {
      auto table = table_of(expected.lanes(), 1);
      const auto got = table_of(decode.lanes(), 1);
      ASSERT_EQ(got.size(), table.size()) << spec << " step " << i;
      for (auto& [position, vectors] : table) {
        ASSERT_TRUE(got.contains(position)) << spec << " step " << i;
        for (int c = 0; c < FakeLayer::kDim; ++c) {
          const double key = vectors.first[c] * (c < rotated ? 4 : 1);
          ASSERT_NEAR(got.at(position).first[c], key, 1e-4) << spec << " step " << i << " position " << position;
        }
        ASSERT_EQ(got.at(position).second, vectors.second) << spec << " step " << i;
      }
      expected.step();
      decode.step();
    }
  }
}

TEST(Ems, without_room_for_merged_entries_is_without_merging) {
  const FakeLayer layer(2, 3, 70, random_attention(8));
  FakeDecode none(layer, "ems:window=8,gamma=1,tau=-1", 24);
  FakeDecode alien(layer, "ems:window=8,gamma=4,tau=1.5", 24);
  FakeDecode off(layer, "ems:window=8,merge=off", 24);
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(table_of(none.lanes(), 1), table_of(alien.lanes(), 1)) << "step " << i;
    ASSERT_EQ(table_of(none.lanes(), 1), table_of(off.lanes(), 1)) << "step " << i;
    none.step();
    alien.step();
    off.step();
  }
}

TEST(Ems, from_a_threshold_of_1_on_merges_nothing_not_even_what_is_equal) {
  const FakeLayer layer(2, 3, 70, random_attention(8), 5);
  FakeDecode all(layer, "ems:window=8,tau=0.99", 24);
  FakeDecode none(layer, "ems:window=8,tau=1", 24);
  FakeDecode off(layer, "ems:window=8,merge=off", 24);
  for (int i = 0; i < 100; ++i) {
    ASSERT_GT(all.lanes().merged_entries(1).count(), 0) << "step " << i;
    ASSERT_EQ(table_of(none.lanes(), 1), table_of(off.lanes(), 1)) << "step " << i;
    for (FakeDecode* const decode : {&all, &none, &off}) decode->step();
  }
}

TEST(Ems, brings_the_global_sums_to_the_windows_share_of_the_queries) {
  // Rows sum to 1, so the ratio is window / n: position 0, which gets half of all attention, counts as 8 of 80 rows.
  const int n = 80;
  const FakeLayer layer(1, 1, n, [](int, int i, int j) { return i == 0 ? 1.0 : j == 0 ? 0.5 : j == i ? 0.5 : 0.0; });
  const auto spec = Spec::parse("ems:window=8,kernel=1");
  layer.look(spec.method(), 20, 0, 1, [&](const policy::LayerView& view) {
    const auto scores = spec.method().selection.score.call(view, {0, 8});
    EXPECT_FLOAT_EQ(scores.head(0)[0], static_cast<float>((1 + 0.5 * (n - 1)) * 8 / n));
    EXPECT_FLOAT_EQ(scores.head(0)[5], static_cast<float>(0.5 * 8 / n));
  });
}

}  // namespace
}  // namespace winnow::test
