// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <complex>
#include <map>
#include <string>

#include "policy/fake_layer.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

using namespace reference;

/// The first `sinks` tokens, and last tokens for the rest of the budget.
std::vector<std::int32_t> streaming(int n, int budget, int sinks) {
  std::vector<std::int32_t> kept;
  for (int j = 0; j < n; ++j) {
    if (n <= budget || j < sinks || j >= n - (budget - sinks)) kept.push_back(j);
  }
  return kept;
}

TEST(StreamingLlm, keeps_what_the_reference_keeps) {
  FakeLayer layer(2, 1, 50, random_attention(1));
  for (const int budget : {5, 6, 20, 49, 50, 51}) {
    EXPECT_EQ(kept(layer.plan("streaming-llm", budget), 1, 50), streaming(50, budget, 4)) << budget;
    if (budget <= 12) continue;
    EXPECT_EQ(kept(layer.plan("streaming-llm:sinks=12", budget), 0, 50), streaming(50, budget, 12)) << budget;
  }
}

TEST(StreamingLlm, after_prefill_alone_nothing_leaves_any_more) {
  FakeLayer layer(2, 1, 50, random_attention(1));
  for (const char* positions : {"absolute", "cache"}) {
    const auto spec = std::string("streaming-llm:when=prefill,positions=") + positions;
    for (const int budget : {5, 20, 49, 50, 60}) {
      FakeDecode decode(layer, spec, budget);
      auto expected = streaming(50, budget, 4);
      for (int i = 0; i < 80; ++i) {
        ASSERT_EQ(decode.kept(1), expected) << spec << " budget " << budget << " step " << i;
        expected.push_back(50 + i);
        decode.step();
      }
    }
  }
  // The default positions are ranks in the lane, since the kept entries are not consecutive.
  EXPECT_EQ(Spec::parse("streaming-llm:when=prefill").method().positions, policy::Positions::cache);
  EXPECT_EQ(Spec::parse("streaming-llm:when=prefill,positions=absolute").method().positions,
            policy::Positions::absolute);
}

using Vector = std::vector<double>;

/// Rotates one head's vector from position `from` to `to`.
Vector turned(Vector x, std::int64_t from, std::int64_t to) {
  const auto& frequency = FakeLayer::rope().frequency;
  for (std::size_t i = 0; i < frequency.size(); ++i) {
    const auto table = [&](std::int64_t p) { return std::polar(1.0, static_cast<double>(p) * frequency[i]); };
    const auto pair = std::complex(x[2 * i], x[2 * i + 1]) * table(to) * std::conj(table(from));
    x[2 * i] = pair.real();
    x[2 * i + 1] = pair.imag();
  }
  return x;
}

double product(const Vector& a, const Vector& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// SinkCache of transformers 4.47, by its update(): keys of one head, with their tokens.
class SinkCache {
 public:
  struct Entry {
    std::int32_t token;
    Vector key;
  };

  SinkCache(int window, int sinks) : window_(window), sinks_(sinks) {}

  /// Position that the model gives to the next call's first token by default.
  int length() const { return static_cast<int>(entries_.size()); }

  const std::vector<Entry>& update(const std::vector<Entry>& more) {
    const int count = static_cast<int>(more.size());
    if (!entries_.empty() && length() + count >= window_) {
      // Keys are rotated as if they were at the positions after the sinks of a full cache.
      std::vector<Entry> left(entries_.begin(), entries_.begin() + sinks_);
      const auto kept = window_ - sinks_ - count;
      for (int i = 0; i < kept; ++i) {
        const auto& entry = entries_[z(length() - kept + i)];
        left.push_back({entry.token, turned(entry.key, sinks_ + count + i, sinks_ + i)});
      }
      entries_ = left;
    }
    entries_.insert(entries_.end(), more.begin(), more.end());
    return entries_;
  }

 private:
  int window_;
  int sinks_;
  std::vector<Entry> entries_;
};

/// Logits of the newest token's query, by the key's token.
std::map<std::int32_t, double> logits(const FakeDecode& decode, int head, const Vector& query) {
  const auto& lanes = decode.lanes();
  auto plan = decode.plans(0)[head];
  if (plan.empty()) plan = {{0, lanes.length(head), 0}};
  std::map<std::int32_t, double> out;
  std::vector<float> key(FakeLayer::kDim);
  for (const auto& range : plan) {
    for (int slot = range.begin; slot < range.end; ++slot) {
      lanes.key(head, slot, key);
      const auto shifted = turned(query, 0, range.query_shift);
      EXPECT_TRUE(out.emplace(lanes.position(head, slot), product(shifted, Vector(key.begin(), key.end()))).second);
    }
  }
  return out;
}

void expect_what_sink_cache_computes(int entries, int sinks, int prompt) {
  constexpr int kHead = 1;
  const FakeLayer layer(2, 1, prompt, random_attention(1));
  FakeDecode decode(layer, "streaming-llm:positions=sinkcache,sinks=" + std::to_string(sinks), entries);
  // An entry's token is the position to which its key is rotated.
  const auto part_of = [&](const std::vector<float>& all) {
    return Vector(all.begin() + kHead * FakeLayer::kDim, all.begin() + (kHead + 1) * FakeLayer::kDim);
  };
  SinkCache cache(entries, sinks);
  std::vector<SinkCache::Entry> read;
  for (int p = 0; p < prompt; ++p) read.push_back({p, part_of(layer.token(p))});
  cache.update(read);
  for (int step = 0; step < 4 * entries; ++step) {
    decode.enter();
    const int token = decode.position();
    const int place = cache.length();
    const auto query = part_of(decode.query());
    std::map<std::int32_t, double> expected;
    for (const auto& entry : cache.update({{token, turned(part_of(layer.token(token)), token, place)}}))
      expected[entry.token] = product(turned(query, token, place), entry.key);
    const auto actual = logits(decode, kHead, query);
    ASSERT_EQ(actual.size(), expected.size()) << "token " << token;
    for (const auto& [of, logit] : expected) {
      ASSERT_TRUE(actual.contains(of)) << "token " << token << " key " << of;
      ASSERT_NEAR(actual.at(of), logit, 1e-9) << "token " << token << " key " << of;
    }
    decode.finish_step();
  }
}

TEST(StreamingLlm, sinkcache_has_the_distances_of_transformers) {
  for (const int sinks : {0, 4}) {
    for (const int prompt : {2, 7, 11, 12, 13, 40}) {
      SCOPED_TRACE("sinks " + std::to_string(sinks) + " prompt " + std::to_string(prompt));
      expect_what_sink_cache_computes(12, sinks, prompt);
    }
  }
}

TEST(StreamingLlm, sinkcache_is_refused_where_nothing_is_evicted_at_steps) {
  try {
    Spec::parse("streaming-llm:positions=sinkcache,when=prefill");
    FAIL() << "not refused";
  } catch (const UsageError& refusal) {
    EXPECT_STREQ(refusal.what(), "streaming-llm: positions=sinkcache needs when=step: SinkCache evicts at every step");
  }
}

}  // namespace
}  // namespace winnow::test
