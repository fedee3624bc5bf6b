// SPDX-License-Identifier: Apache-2.0
// Methods on a network with sliding windows in some layers: they see and compress only the other layers.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>
#include <numeric>
#include <optional>
#include <set>

#include "engine/kept_fixture.h"
#include "policy/counter_random.h"
#include "support/refusal.h"
#include "support/reseal.h"
#include "winnow/chat.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

constexpr int kWindow = 24;
constexpr int kBudget = 72;  // infllm needs 64
const std::vector<bool> kPattern = {true, false, true, true, false, false};
const std::vector<int> kGlobal = {1, 4, 5};

/// Message of the UsageError that a call throws.
template <class Call>
std::string refusal_of(const Call& call) {
  try {
    call();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

class WindowsTest : public KeptTest {
 protected:
  static constexpr int kSteps = 40;  // more steps than the window's length

  WindowsTest() : KeptTest(tiny_with_windows(kWindow, kPattern)) {}

  double tolerance() const { return f32_tolerance(6) + half_tolerance(10, 6); }
  void expect_steps_over_what_is_kept(Cache& cache, Network& network, const std::string& spec);
};

std::vector<std::int32_t> last_positions(int seen, int count) {
  std::vector<std::int32_t> out;
  for (int i = std::max(0, seen - count); i < seen; ++i) out.push_back(i);
  return out;
}

void expect_windows(const Cache& cache, int seen) {
  const auto kept = cache.kept();
  for (std::size_t layer = 0; layer < kPattern.size(); ++layer) {
    if (!kPattern[layer]) continue;
    for (const auto& head : kept[layer]) EXPECT_EQ(head, last_positions(seen, kWindow)) << "layer " << layer;
  }
}

TEST_F(WindowsTest, layers_hold_their_window_whatever_the_method) {
  const auto text = tokens(kPrompt);
  for (const auto& spec : all_specs()) {
    SCOPED_TRACE(spec);
    auto prefilled = prefill(with_budget(spec), text);
    Cache& cache = prefilled.caches.front();
    expect_windows(cache, kPrompt);
    int seen = kPrompt;
    for (const Token token : tokens(kSteps, 2)) {
      step(cache, token);
      expect_windows(cache, ++seen);
    }
    session_->extend(cache, tokens(70, 3));
    expect_windows(cache, seen + 70);
    const auto& method = cache.impl().method();
    if (method.evicts()) {
      const bool evicts_on = method.schedule == policy::Schedule::step;
      EXPECT_DOUBLE_EQ(cache.stats().entries_per_head_mean,
                       kBudget + (kSteps + 70) % (evicts_on ? method.decoding.buffer : kSteps + 71));
    }
  }
}

/// Compares steps with textbook attention over the entries that the cache holds when a token's query reads them.
void WindowsTest::expect_steps_over_what_is_kept(Cache& cache, Network& network, const std::string& spec) {
  const bool evicts_first = static_cast<bool>(cache.impl().method().decoding.evict);
  auto kept = cache.kept();
  network.attention().set_sees([&](int layer, int kv_head, int query, int key) {
    if (kPattern[z(layer)]) return true;  // layers with a window see it
    const auto& of_head = kept[z(layer)][z(kv_head)];
    return query == key || std::binary_search(of_head.begin(), of_head.end(), key);
  });
  int position = cache.stats().tokens_seen;
  for (const Token token : tokens(kSteps, 2)) {
    if (!evicts_first) kept = cache.kept();
    const auto got = step(cache, token);
    if (evicts_first) kept = cache.kept();
    ASSERT_LT(distance(got, network.step(std::span(&token, 1), {{0, position++}})), tolerance()) << spec;
  }
  network.attention().set_sees({});
}

TEST_F(WindowsTest, steps_read_what_each_method_has_kept) {
  int methods = 0;
  Network network(path_, 1, 1, kPrompt + kSteps);
  network.prefill(tokens(kPrompt), 64);
  for (const auto& spec : all_specs()) {
    if (!only_evicts(Spec::parse(spec).method())) continue;
    auto prefilled = prefill(with_budget(spec));
    expect_steps_over_what_is_kept(prefilled.caches.front(), network, spec);
    ++methods;
  }
  EXPECT_GT(methods, 15);
}

/// Textbook attention from some rows to each key, [layer][KV head][key].
class Given {
 public:
  Given(Network& network, int first_row, int keys) : group_(network.hparams().layer(0).group()) {
    const auto& h = network.hparams();
    sums_.assign(z(h.n_layer), std::vector(z(h.layer(0).n_head_kv), std::vector<double>(z(keys))));
    network.attention().set_observer(
        [this, first_row](int layer, const DenseAttention::Row& row, int head, std::span<const double> weights) {
          auto& sums = sums_[z(layer)][z(head / group_)];
          for (std::size_t j = 0; row.position >= first_row && j < std::min(sums.size(), weights.size()); ++j)
            sums[j] += weights[j];
        });
  }
  const std::vector<double>& of(int layer, int head) const { return sums_[z(layer)][z(head)]; }

 private:
  int group_;
  std::vector<std::vector<std::vector<double>>> sums_;
};

/// Expects that each layer without a window keeps those of the keys [first, end) with the highest sums.
void expect_best(const Cache& cache, const Given& given, int first, int end, double slack) {
  const auto kept = cache.kept();
  for (int layer = 0; layer < static_cast<int>(kPattern.size()); ++layer) {
    if (kPattern[z(layer)]) continue;
    for (int head = 0; head < static_cast<int>(kept[z(layer)].size()); ++head) {
      const auto& stays = kept[z(layer)][z(head)];
      double worst = 1e9;
      double best_left = 0;
      for (int j = first; j < end; ++j) {
        const double x = given.of(layer, head)[z(j)];
        if (std::binary_search(stays.begin(), stays.end(), j)) {
          worst = std::min(worst, x);
        } else {
          best_left = std::max(best_left, x);
        }
      }
      EXPECT_GE(worst, best_left * (1 - slack)) << "layer " << layer << ", head " << head;
      EXPECT_GT(best_left, 0);
    }
  }
}

TEST_F(WindowsTest, a_prompt_keeps_what_its_last_rows_attend_to) {
  Network network(path_, 1, 1, kPrompt);
  const Given given(network, kPrompt - 8, kPrompt - 8);
  network.prefill(tokens(kPrompt), 64);
  const auto prefilled = prefill(with_budget("snapkv:window=8,kernel=1"));
  expect_best(prefilled.caches.front(), given, 0, kPrompt - 8, kLargestGain * tolerance());
  const auto all = Given(network, 0, kPrompt);
  network.prefill(tokens(kPrompt), 64);
  const auto heavy = prefill(with_budget("h2o:recent=0,when=prefill"));
  expect_best(heavy.caches.front(), all, 0, kPrompt, kLargestGain * tolerance());
}

/// Heads that share a layer's budget keep the best entries of all heads together.
TEST_F(WindowsTest, heads_that_share_a_budget_keep_the_best_of_their_layer) {
  Network network(path_, 1, 1, kPrompt);
  const Given given(network, kPrompt - 8, kPrompt - 8);
  network.prefill(tokens(kPrompt), 64);
  const auto prefilled = prefill(with_budget("ada-snapkv:window=8,kernel=1,floor=0"));
  const auto kept = prefilled.caches.front().kept();
  for (const int layer : kGlobal) {
    double worst = 1e9;
    double best_left = 0;
    std::size_t entries = 0;
    for (int head = 0; head < 2; ++head) {
      const auto& stays = kept[z(layer)][z(head)];
      entries += stays.size();
      EXPECT_TRUE(std::ranges::equal(std::span(stays).last(8), last_positions(kPrompt, 8)));
      for (int j = 0; j < kPrompt - 8; ++j) {
        const bool is_kept = std::binary_search(stays.begin(), stays.end(), j);
        if (is_kept) worst = std::min(worst, given.of(layer, head)[z(j)]);
        if (!is_kept) best_left = std::max(best_left, given.of(layer, head)[z(j)]);
      }
    }
    EXPECT_EQ(entries, z(2 * kBudget));
    EXPECT_GE(worst, best_left * (1 - kLargestGain * tolerance())) << "layer " << layer;
  }
}

/// Entries of `in` that `from` lacks.
std::vector<std::int32_t> missing(const std::vector<std::int32_t>& from, const std::vector<std::int32_t>& in) {
  std::vector<std::int32_t> out;
  std::ranges::set_difference(in, from, std::back_inserter(out));
  return out;
}

/// tova evicts after the prompt and at every step, by the attention of all heads together.
TEST_F(WindowsTest, each_step_evicts_what_its_query_attends_to_the_least) {
  auto prefilled = prefill(with_budget("tova"));
  Cache& cache = prefilled.caches.front();
  Network network(path_, 1, 1, kPrompt + kSteps);
  std::optional<Given> given(std::in_place, network, kPrompt - 1, kPrompt);
  network.prefill(tokens(kPrompt), 64);
  std::vector<std::int32_t> all(kPrompt);
  std::iota(all.begin(), all.end(), 0);
  auto before = std::vector(kPattern.size(), std::vector(2, all));
  int position = kPrompt - 1;
  const auto expect_least_evicted = [&](std::size_t count) {
    const auto after = cache.kept();
    for (const int layer : kGlobal) {
      const auto attended = [&](int j) { return given->of(layer, 0)[z(j)] + given->of(layer, 1)[z(j)]; };
      EXPECT_EQ(after[z(layer)][0], after[z(layer)][1]);
      EXPECT_EQ(after[z(layer)][0].back(), position);
      const auto evicted = missing(after[z(layer)][0], before[z(layer)][0]);
      ASSERT_EQ(evicted.size(), count) << "layer " << layer;
      double most = 0;
      for (const int j : evicted) most = std::max(most, attended(j));
      for (const int j : after[z(layer)][0])
        ASSERT_TRUE(j == position || attended(j) >= most * (1 - kLargestGain * tolerance())) << "layer " << layer;
    }
  };
  expect_least_evicted(kPrompt - kBudget);
  network.attention().set_sees([&](int layer, int kv_head, int query, int key) {
    const auto& of_head = before[z(layer)][z(kv_head)];
    return kPattern[z(layer)] || query == key || std::binary_search(of_head.begin(), of_head.end(), key);
  });
  for (const Token token : tokens(kSteps, 2)) {
    before = cache.kept();
    ++position;
    given.emplace(network, position, position + 1);
    network.step(std::span(&token, 1), {{0, position}});
    step(cache, token);
    for (const int layer : kGlobal) {
      for (auto& head : before[z(layer)]) head.push_back(position);
    }
    expect_least_evicted(1);
  }
}

/// quest: in all layers without a window except the first, each query reads the pages with the largest bounds.
TEST_F(WindowsTest, pages_are_chosen_in_the_layers_without_windows) {
  constexpr int kPage = 16;
  constexpr int kPages = (kBudget + kPage - 1) / kPage;
  auto prefilled = prefill(with_budget("quest:page=16,dense=1"));
  Cache& cache = prefilled.caches.front();
  Network network(path_, 1, 1, kPrompt + kSteps);
  network.prefill(tokens(kPrompt), 64);
  const auto& spec = network.hparams().layer(kGlobal[0]);
  std::set<int> read;  // pages of the next row, layer and head
  int position = kPrompt;
  network.attention().set_reader([&](int /*layer*/, int head, const DenseAttention::Reading& reading) {
    const int pages = position / kPage + 1;
    std::vector<std::pair<double, int>> bounds;
    for (int page = 0; page + 1 < pages; ++page) {
      double bound = 0;
      for (int g = head * spec.group(); g < (head + 1) * spec.group(); ++g) {
        for (int c = 0; c < spec.head_dim; ++c) {
          double most = -1e30;
          for (int j = page * kPage; j < (page + 1) * kPage; ++j)
            most = std::max(most, double{reading.query(g)[z(c)]} * reading.key(j)[z(c)]);
          bound += most;
        }
      }
      bounds.emplace_back(-bound, page);
    }
    std::sort(bounds.begin(), bounds.end());
    read = {pages - 1};
    for (int i = 0; i + 1 < kPages; ++i) read.insert(bounds[z(i)].second);
  });
  int narrowed = 0;
  network.attention().set_sees([&](int layer, int, int, int key) {
    const bool sees = kPattern[z(layer)] || layer == kGlobal[0] || read.contains(key / kPage);
    narrowed += sees ? 0 : 1;
    return sees;
  });
  for (const Token token : tokens(kSteps, 2)) {
    const auto want = network.step(std::span(&token, 1), {{0, position}});
    ASSERT_LT(distance(step(cache, token), want), tolerance()) << position;
    ++position;
  }
  EXPECT_GT(narrowed, 1000);
}

/// The layer's number in seeds counts all layers of the model.
TEST_F(WindowsTest, random_choices_are_of_the_layer_s_own_number) {
  const auto kept = prefill(with_budget("random")).caches.front().kept();
  for (const int layer : kGlobal) {
    for (int head = 0; head < 2; ++head) {
      std::vector<std::pair<double, std::int32_t>> drawn;
      for (int j = 0; j < kPrompt; ++j) drawn.emplace_back(-policy::uniform_at(0, layer, head, j), j);
      std::sort(drawn.begin(), drawn.end());
      std::set<std::int32_t> best;
      for (int i = 0; i < kBudget; ++i) best.insert(drawn[z(i)].second);
      const auto& stays = kept[z(layer)][z(head)];
      EXPECT_EQ(std::set(stays.begin(), stays.end()), best) << "layer " << layer;
    }
  }
}

/// A turn's tokens see the kept entries of earlier text in layers without a window, and in the others the window's
/// entries from a mark, or from the cache of a text in stages.
TEST_F(WindowsTest, a_later_turn_keeps_what_its_last_rows_attend_to) {
  constexpr int kFirst = 61;
  const auto text = tokens(kPrompt);
  const auto turn = std::span(text).subspan(kFirst);
  const auto options = with_budget("snapkv:window=8,kernel=1", 32);
  Cache cache = std::move(prefill(options, std::span(text).first(kFirst)).caches.front());
  const auto kept = cache.kept();
  const CacheMark begin = cache.mark();
  session_->extend(cache, turn);
  EXPECT_EQ(refusal_of([&] { session_->compress(cache, turn); }),
            "cannot compress the last 89 of 150 tokens: a sliding window of 24 has lost the entries before them; pass "
            "a mark taken where they begin");
  session_->compress(cache, turn, begin);
  expect_windows(cache, kPrompt);
  EXPECT_EQ(cache.stats().entries_max, 64);

  Network network(path_, 1, 1, kPrompt + kSteps);
  network.prefill(std::span(text).first(kFirst), 64);
  network.attention().set_sees([&](int layer, int kv_head, int, int key) {
    const auto& of_head = kept[z(layer)][z(kv_head)];
    return kPattern[z(layer)] || key >= kFirst || std::binary_search(of_head.begin(), of_head.end(), key);
  });
  const Given given(network, kPrompt - 8, kPrompt);
  for (int i = kFirst; i < kPrompt; ++i) network.step(std::span(&text[z(i)], 1), {{0, i}});
  expect_best(cache, given, kFirst, kPrompt - 8, kLargestGain * tolerance());
  network.attention().set_observer({});
  expect_steps_over_what_is_kept(cache, network, "after a turn");
}

TEST_F(WindowsTest, a_mark_goes_back) {
  for (const char* spec : {"full", "snapkv", "snapkv:positions=cache", "h2o", "quest", "quest(snapkv)"}) {
    for (const int prompt : {kWindow - 5, kWindow, kPrompt}) {
      SCOPED_TRACE(testing::Message() << spec << " after " << prompt);
      Cache cache = std::move(prefill(with_budget(spec, kBudget), tokens(prompt)).caches.front());
      for (const Token token : tokens(3, 8)) step(cache, token);
      Cache untouched = cache.clone();
      CacheMark mark = cache.mark();
      session_->extend(cache, tokens(70, 2));
      for (const Token token : tokens(5, 9)) step(cache, token);
      cache.go_back(std::move(mark));
      EXPECT_EQ(cache.kept(), untouched.kept());
      for (const Token token : tokens(kSteps, 3)) ASSERT_EQ(step(cache, token), step(untouched, token));
      EXPECT_EQ(cache.stats().bytes_held, untouched.stats().bytes_held);
    }
  }
}

TEST_F(WindowsTest, what_is_saved_goes_on_as_if_it_had_not_been) {
  expect_that_what_is_saved_goes_on(kSteps, [&](Cache& cache, Cache& restored, const SavedInfo& info) {
    EXPECT_EQ(session_->extend(restored, tokens(70, 4)), session_->extend(cache, tokens(70, 4)));
    EXPECT_EQ(info.layers[0].window, kWindow);
    EXPECT_EQ(info.layers[1].window, 0);
    const auto& method = cache.impl().method();
    const int kept = method.evicts() ? kBudget : kPrompt;
    const bool evicts_on = method.schedule == policy::Schedule::step;
    EXPECT_DOUBLE_EQ(info.entries_per_head_mean, kept + kSteps % (evicts_on ? method.decoding.buffer : kSteps + 1));
  });
}

/// The checksums are correct.
TEST_F(WindowsTest, lanes_of_a_file_that_hold_no_window_are_refused) {
  const std::string file = folder_ / "saved.kv";
  auto prefilled = prefill(options_of("full", "", "f32"));
  Transcript transcript;
  transcript.tokens = tokens(kPrompt);
  session_->save(file, prefilled.caches.front(), {}, transcript);
  std::ifstream in(file, std::ios::binary);
  const std::string good(std::istreambuf_iterator<char>(in), {});
  const auto positions = last_positions(kPrompt, kWindow);
  const auto at = good.find(std::string(reinterpret_cast<const char*>(positions.data()), 4 * positions.size()));
  ASSERT_NE(at, std::string::npos);
  const auto refusal_with = [&](std::vector<std::int32_t> others) {
    std::vector<std::byte> bytes(good.size());
    std::memcpy(bytes.data(), good.data(), good.size());
    std::memcpy(bytes.data() + at, others.data(), 4 * others.size());
    reseal(bytes);
    std::ofstream(file, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return refusal([&] { session_->load(file); });
  };
  EXPECT_EQ(refusal_with(positions), "");
  auto ring = positions;
  std::rotate(ring.begin(), ring.begin() + 5, ring.end());
  EXPECT_EQ(refusal_with(ring), "");
  for (int wrong = 0; wrong < 3; ++wrong) {
    auto others = positions;
    if (wrong == 0) std::swap(others[3], others[4]);
    if (wrong == 1) others[0] = 7;
    if (wrong == 2) std::reverse(others.begin(), others.end());
    EXPECT_NE(refusal_with(others).find(
                  "a lane with a limit of 24 entries does not hold the last of 150 tokens in a window of 24"),
              std::string::npos)
        << wrong;
  }
}

/// A chat compresses its turns like a session that gets the marks.
TEST_F(WindowsTest, a_chat_compresses_its_turns) {
  GenerateOptions few;
  few.max_tokens = 5;
  few.end = EndOfSequence::ignored;
  const auto options = with_budget("snapkv:window=8", 32);
  Chat chat(*session_, {std::string(100, 'a'), {}, PromptFormat::raw, {}}, options, few);
  chat.say("who is it, and what happens to them in the end?", {});
  chat.compress_turn();
  for (const std::string words : {"and then, when all of them have gone home for the night?", "why?"}) {
    const int before = chat.stats()->tokens_seen;
    const int kept = chat.stats()->entries_max;
    chat.say(words, {});
    const int turn = chat.stats()->tokens_seen - before;
    EXPECT_EQ(chat.stats()->entries_max, kept + turn);
    chat.compress_turn();
    EXPECT_EQ(chat.stats()->entries_max, kept + std::min(turn, 32));
    session_->on_stop([] { return true; });
    EXPECT_THROW(chat.say("no", {}), Interrupted);
    session_->on_stop({});
  }
}

/// Rows of a batch, and requests of a scheduler, are bit for bit the same as alone.
TEST_F(WindowsTest, answers_are_those_of_a_request_alone) {
  std::vector<Cache> together;
  std::vector<Cache> alone;
  std::vector<Cache*> pointers;
  const auto specs = all_specs();
  for (std::size_t i = 0; i < specs.size(); ++i) {
    const auto text = tokens(kPrompt - 7 * static_cast<int>(i % 8));
    together.push_back(std::move(prefill(with_budget(specs[i]), text).caches.front()));
    alone.push_back(together.back().clone());
  }
  for (auto& cache : together) pointers.push_back(&cache);
  std::vector<float> logits(specs.size() * z(model_->info().n_vocab));
  for (unsigned round = 0; round < kSteps; ++round) {
    const auto next = tokens(static_cast<int>(specs.size()), 50 + round);
    session_->step(pointers, next, logits);
    for (std::size_t i = 0; i < specs.size(); ++i) {
      const auto row = std::span(logits).subspan(i * z(model_->info().n_vocab), z(model_->info().n_vocab));
      ASSERT_TRUE(std::ranges::equal(row, step(alone[i], next[i]))) << specs[i] << " round " << round;
    }
  }
}

TEST_F(WindowsTest, budgets_and_bytes_are_those_of_the_layers_without_windows) {
  const std::size_t entry = 2 * (2 * 32 * 4 + 4);  // two KV heads
  const std::size_t windows = 3 * entry * kWindow;
  const auto full = prefill(options_of("full", "", "f32")).caches.front().stats();
  EXPECT_EQ(full.bytes_held, windows + 3 * entry * kPrompt);
  EXPECT_EQ(full.bytes_full, std::size_t{3} * (kWindow + kPrompt) * 2 * 2 * 32 * 2);
  EXPECT_EQ(full.bytes_full, model_->info().full_cache_bytes(kPrompt));
  EXPECT_EQ(full.entries_min, kPrompt);
  EXPECT_DOUBLE_EQ(full.attended_per_head_mean, kPrompt);
  const auto some = prefill(options_of("knorm", "96KiB", "f32")).caches.front().stats();
  EXPECT_LE(some.bytes_held, 98304U);
  EXPECT_GT(some.bytes_held + 3 * entry, 98304U);
  const auto third = prefill(options_of("snapkv", "40%", "f32")).caches.front().stats();
  EXPECT_EQ(third.entries_max, 60);
  EXPECT_EQ(refusal_of([&] { prefill(options_of("knorm", "32KiB", "f32")); }),
            "a budget of 32KiB is too small: the sliding windows of 3 layers alone take 36.6 KiB with 150 tokens");
}

TEST_F(WindowsTest, pyramids_fall_over_the_layers_without_windows) {
  const auto kept = prefill(with_budget("pyramidkv:window=8")).caches.front().kept();
  EXPECT_GT(kept[1][0].size(), kept[4][0].size());
  EXPECT_GT(kept[4][0].size(), kept[5][0].size());
  EXPECT_EQ(kept[1][0].size() + kept[4][0].size() + kept[5][0].size(), z(3 * kBudget));
}

TEST_F(WindowsTest, the_bytes_that_are_foretold_suffice) { expect_that_the_bytes_foretold_suffice(); }

TEST_F(WindowsTest, where_all_layers_have_one_only_full_runs) {
  write_tiny_gguf(tiny_with_windows(kWindow, {true, true}), folder_ / "all.gguf");
  Session session(Model::load(folder_ / "all.gguf"), {1, Precision::f32, 64});
  const auto text = tokens(kPrompt);
  const auto options = options_of("snapkv", "64", "f32");
  EXPECT_EQ(refusal_of([&] { session.prefill(text, std::span(&options, 1)); }),
            "all 2 layers of the model have sliding windows, so snapkv has nothing to evict: use full");
  const auto full = options_of("full", "", "f32");
  auto prefilled = session.prefill(text, std::span(&full, 1));
  session.extend(prefilled.caches.front(), text);
  EXPECT_EQ(prefilled.caches.front().stats().entries_max, kWindow);
}

}  // namespace
}  // namespace winnow::test
