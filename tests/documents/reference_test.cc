// SPDX-License-Identifier: Apache-2.0
// SamKV compared with the slow reference: stored facts, chosen blocks, recomputed tokens and the result.
#include "reference.h"

#include "documents/facts.h"
#include "documents/select.h"
#include "engine/sequence.h"
#include "fixture.h"

namespace winnow::test {
namespace {

/// Networks with attention that is sharp enough for blocks to differ. Their documents are read once for all tests.
class ReferenceTest : public MultiTest, public testing::WithParamInterface<std::string> {
 protected:
  static constexpr int kLengths[] = {870, 430, 300, 130, 64};

  ReferenceTest()
      : MultiTest(network(GetParam())),
        expected_(all_expected_[GetParam()]),
        weights_(model::Weights::load(path_)),
        slow_(*weights_, account_) {
    for (const int n : kLengths) {
      const auto text = tokens(n, 100 + static_cast<unsigned>(documents_.size()));
      documents_.push_back(document(text));
      if (expected_.size() < documents_.size()) expected_.push_back(slow_.ingest(text));
    }
  }

  static TinyModel network(const std::string& name) {
    if (name == "equal_layers") return tiny();
    if (name == "different_layers") return tiny_of_different_layers();
    TinyModel model = tiny_of_heads(name == "soft_caps" ? "gemma2" : "granite_swa", 6, 2, 64);
    model.ctx_train = 4096;
    model.keys = {{".attention.sliding_window_pattern", std::vector<bool>(z(model.n_layer))}};
    return model;
  }

  static void TearDownTestSuite() { all_expected_.clear(); }

  const model::Hparams& hparams() const { return weights_->hparams(); }

  /// The reference's documents with winnow's exponents, which what_is_kept_of_a_document compares. An exponent at the
  /// threshold is then an outlier to both sides, or to neither.
  std::vector<reference::Document> documents_with_same_exponents() const {
    auto out = expected_;
    for (std::size_t i = 0; i < out.size(); ++i) {
      for (std::size_t layer = 0; layer < out[i].layers.size(); ++layer) {
        for (auto& [block, exponent] : out[i].layers[layer].exponent)
          exponent = static_cast<double>(documents_[i]->head().layers[layer].representatives[z(block - 1)].exponent);
      }
    }
    return out;
  }

  void expect_same(const Asked& got, const reference::Outcome& want) const;
  void expect_same_entries(const cache::LayerLanes& lanes, const reference::Entries& want, int layer) const;

  inline static std::map<std::string, std::vector<reference::Document>> all_expected_;
  std::vector<reference::Document>& expected_;
  std::shared_ptr<const model::Weights> weights_;
  MemoryAccount account_;
  reference::SamKv slow_;
  Documents documents_;
};

void ReferenceTest::expect_same(const Asked& got, const reference::Outcome& want) const {
  std::size_t recomputed = 0;
  for (int layer = 0; layer < hparams().n_layer; ++layer) {
    for (std::size_t i = 0; i < want.kept[layer].size(); ++i) {
      const auto& blocks = got.kept_blocks[layer][i];
      EXPECT_EQ(std::set<int>(blocks.begin(), blocks.end()), want.kept[layer][i])
          << "layer " << layer << ", document " << i;
    }
    recomputed += want.recomputed[layer].size();
  }
  if (HasFailure()) return;
  EXPECT_NEAR(got.recompute_ratio * got.document_tokens * hparams().n_layer, static_cast<double>(recomputed), 0.01);
  for (int layer = 0; layer < hparams().n_layer; ++layer)
    expect_same_entries(got.cache.impl().lanes(layer), want.entries[layer], layer);
  // Three passes add errors: the documents, the recomputed tokens, and the question.
  EXPECT_LT(distance(got.logits, want.logits), 3 * tolerance());
}

void ReferenceTest::expect_same_entries(const cache::LayerLanes& lanes, const reference::Entries& want,
                                        int layer) const {
  const auto& spec = hparams().layer(layer);
  const auto d = z(spec.head_dim);
  for (int head = 0; head < spec.n_head_kv; ++head) {
    ASSERT_EQ(lanes.length(head), static_cast<int>(want.size() + question_.size())) << "layer " << layer;
    int slot = 0;
    for (const auto& [position, entry] : want) {
      ASSERT_EQ(lanes.position(head, slot), position);
      std::vector<float> key(d);
      std::vector<float> value(d);
      lanes.key(head, slot, key);
      lanes.value(head, slot, value);
      ASSERT_LT(distance(key, std::span(entry.key).subspan(z(head) * d, d)), 2 * tolerance())
          << "layer " << layer << " at " << position;
      ASSERT_LT(distance(value, std::span(entry.value).subspan(z(head) * d, d)), 2 * tolerance())
          << "layer " << layer << " at " << position;
      ++slot;
    }
  }
}

TEST_P(ReferenceTest, what_is_kept_of_a_document) {
  const double logit_error = kLargestGain * tolerance();
  for (std::size_t i = 0; i < documents_.size(); ++i) {
    const auto& head = documents_[i]->head();
    ASSERT_EQ(head.layout().middle(), expected_[i].middle());
    for (int layer = 0; layer < hparams().n_layer; ++layer) {
      const auto& got = head.layers[layer];
      const auto& want = expected_[i].layers[layer];
      const auto close = [&](std::span<const float> a, std::span<const double> b) {
        const std::vector<float> narrow(b.begin(), b.end());
        EXPECT_LT(distance(a, narrow), tolerance()) << "document " << i << ", layer " << layer;
      };
      close(got.local_query, want.local_query);
      close(got.edge_key, want.edge_key);
      ASSERT_EQ(got.representatives.size(), want.representative.size());
      for (const auto& [block, token] : want.representative) {
        const auto b = z(block - 1);
        const auto& r = got.representatives[b];
        EXPECT_EQ(r.token, token) << "document " << i << ", layer " << layer << ", block " << block;
        EXPECT_NEAR(static_cast<double>(r.attention) / want.mean.at(block), 1, logit_error);
        // Error of a slope: each logarithm has the error of its logit.
        EXPECT_NEAR(static_cast<double>(r.exponent), want.exponent.at(block), 2 * logit_error);
        const std::size_t width = want.block_key.at(block).size();
        close(std::span(got.block_keys).subspan(b * width, width), want.block_key.at(block));
      }
      const auto n = static_cast<std::size_t>(documents_[i]->tokens());
      // The last token receives no attention, so its value is only the f32 rounding of its sum minus its own.
      for (int kv = 0; kv < hparams().layer(layer).n_head_kv; ++kv)
        close(std::span(got.received).subspan(z(kv) * n, n), want.received[kv]);
    }
  }
}

TEST_P(ReferenceTest, blocks_recomputed_tokens_and_the_result) {
  struct Case {
    const char* spec;
    reference::Options options;
  };
  reference::Options all;
  std::vector<Case> cases = {{"samkv", all}};
  const auto add = [&](const char* spec, auto&& change) {
    reference::Options o;
    change(o);
    cases.push_back({spec, o});
  };
  add("samkv:update=overwrite,sigma=1", [](auto& o) {
    o.fusion = false;
    o.sigma = 1;
  });
  add("samkv:fresh=0,deciding=4", [](auto& o) {
    o.fresh = 0;
    o.deciding = 4;
  });
  add("samkv:sigma=0.5,deciding=3", [](auto& o) {
    o.sigma = 0.5;
    o.deciding = 3;
  });
  add("samkv:anchor=block,sigma=1,deciding=4", [](auto& o) {
    o.anchor_block = true;
    o.sigma = 1;
    o.deciding = 4;
  });
  add("samkv:personalize=off,deciding=4", [](auto& o) {
    o.personalize = false;
    o.deciding = 4;
  });
  add("samkv:score=zscore,deciding=4,sigma=1", [](auto& o) {
    o.zscore = true;
    o.deciding = 4;
    o.sigma = 1;
  });
  add("samkv:select=off", [](auto& o) { o.select = false; });
  add("samkv:recompute=off,deciding=2", [](auto& o) {
    o.recompute = false;
    o.deciding = 2;
  });
  const std::vector<std::pair<std::vector<int>, std::size_t>> sets = {
      {{0, 1, 2}, cases.size()}, {{3, 2, 4, 1}, 3}, {{1}, 2}};
  const auto slow_documents = documents_with_same_exponents();
  int middle_kept = 0;
  int between = 0;  // recomputed tokens outside the edges
  for (const auto& [set, count] : sets) {
    Documents some;
    std::vector<const reference::Document*> same;
    for (const int i : set) {
      some.push_back(documents_[i]);
      same.push_back(&slow_documents[i]);
    }
    for (const auto& c : std::span(cases).first(count)) {
      SCOPED_TRACE(std::string(c.spec) + " over " + std::to_string(set.size()) + " documents");
      const auto want = slow_.ask(same, question_, c.options);
      expect_same(ask(some, c.spec), want);
      if (HasFailure()) return;
      for (std::size_t l = 0; l < want.kept.size(); ++l) {
        std::size_t edges = 0;
        for (std::size_t i = 0; i < same.size(); ++i) {
          for (const int b : want.kept[l][i]) {
            if (same[i]->is_middle(b)) {
              ++middle_kept;
            } else {
              edges += z(same[i]->end(b) - 64 * b);
            }
          }
        }
        if (c.options.recompute) between += static_cast<int>(want.recomputed[l].size() - edges);
      }
    }
  }
  EXPECT_GT(middle_kept, 10) << "nothing was chosen, so nothing was tested";
  EXPECT_GT(between, 2) << "no outlier was recomputed";
}

/// A document with only the facts that the choice of blocks needs.
class Facts : public documents::Document {
 public:
  Facts(const reference::Document& from) {
    head_.saved.seen = from.n();
    for (const auto& layer : from.layers) {
      auto& to = head_.layers.emplace_back();
      to.local_query.assign(layer.local_query.begin(), layer.local_query.end());
      to.edge_key.assign(layer.edge_key.begin(), layer.edge_key.end());
      for (const auto& [block, key] : layer.block_key) {
        to.block_keys.insert(to.block_keys.end(), key.begin(), key.end());
        to.representatives.push_back({layer.representative.at(block), static_cast<float>(layer.exponent.at(block)),
                                      static_cast<float>(layer.mean.at(block))});
      }
    }
  }
  const documents::DocumentHead& head() const override { return head_; }
  documents::LayerPart read(int, std::span<const documents::TokenRange>) const override {
    throw std::logic_error("there is nothing to read");
  }
  documents::LayerPart read_all(int) const override { throw std::logic_error("there is nothing to read"); }

 private:
  documents::DocumentHead head_;
};

/// Random facts and queries, some of them equal. Rounded to f32, so both sides get the same numbers.
class RandomFacts {
 public:
  RandomFacts(const model::Hparams& hparams, unsigned seed) : h_(hparams), random_(seed) {}

  int number(int least, int most) { return std::uniform_int_distribution(least, most)(random_); }
  reference::Vector vector(int n, const reference::Vector& around, double spread) {
    std::normal_distribution<double> normal(0, spread);
    reference::Vector out;
    for (int i = 0; i < n; ++i) out.push_back(static_cast<float>(normal(random_) + (around.empty() ? 0 : around[i])));
    return out;
  }

  /// Keys lie around a common direction, so anchors lie between the others.
  reference::Document document(const reference::Vector& direction) {
    reference::Document doc;
    doc.tokens.resize(z(number(1, 14) * 64 + number(0, 63)));
    doc.layers.resize(z(h_.n_layer));
    for (int l = 0; l < h_.n_layer; ++l) {
      auto& layer = doc.layers[l];
      const auto& spec = h_.layer(l);
      const int width = spec.n_head_kv * spec.head_dim;
      layer.local_query = vector(spec.n_head * spec.head_dim, {}, 1);
      layer.edge_key = vector(width, direction, 0.5);
      for (int b = 0; b < doc.blocks(); ++b) {
        if (!doc.is_middle(b)) continue;
        const bool again = b > 1 && number(0, 3) == 0;  // ties of every kind
        layer.block_key[b] = again ? layer.block_key[b - 1] : vector(width, direction, 1);
        layer.representative[b] = 64 * b + number(0, 63);
        layer.exponent[b] = again ? layer.exponent[b - 1] : number(0, 5) / 4.0;
        layer.mean[b] = again ? layer.mean[b - 1] : number(1, 6) / 8.0;
      }
    }
    return doc;
  }

 private:
  const model::Hparams& h_;
  std::mt19937 random_;
};

/// The facts are random, so only the network's head sizes matter, not its attention.
TEST_P(ReferenceTest, blocks_are_chosen_as_they_should_be_whatever_the_facts) {
  if (hparams().layer(0).attention_cap > 0 || !hparams().sink_logits.empty()) GTEST_SKIP() << "its heads are equal";
  int kept = 0;
  int left = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomFacts random(hparams(), seed);
    int widest = 0;
    for (const auto& kind : hparams().kinds) widest = std::max(widest, kind.n_head_kv * kind.head_dim);
    const auto direction = random.vector(widest, {}, 1);
    std::vector<reference::Document> slow(z(random.number(1, 5)));
    std::vector<const reference::Document*> same;
    Documents some;
    for (auto& doc : slow) {
      doc = random.document(direction);
      same.push_back(&doc);
      some.push_back(std::make_shared<Facts>(doc));
    }
    std::vector<reference::Vector> question;
    for (int l = 0; l < hparams().n_layer; ++l)
      question.push_back(random.vector(hparams().layer(l).n_head * hparams().layer(l).head_dim, {}, 1));
    reference::Options options;
    options.personalize = seed % 2 == 0;
    options.zscore = seed % 3 == 0;
    options.deciding = random.number(0, hparams().n_layer);
    const auto want = slow_.choose(same, question, options);
    const documents::Joint joint(some, hparams());
    const auto got = documents::select_blocks(
        joint, question,
        {options.personalize ? documents::Personalize::on : documents::Personalize::off,
         options.zscore ? documents::BlockScore::zscore : documents::BlockScore::cosine,
         options.deciding > 0 ? options.deciding : documents::usual_deciding_layers(hparams().n_layer)});
    for (int l = 0; l < hparams().n_layer; ++l) {
      for (std::size_t i = 0; i < same.size(); ++i) {
        std::vector<int> middle;
        for (const int b : want.kept[l][i]) {
          if (same[i]->is_middle(b)) middle.push_back(b - 1);
        }
        ASSERT_EQ(got[l][i], middle) << "layer " << l << ", document " << i;
        kept += static_cast<int>(middle.size());
        left += same[i]->middle() - static_cast<int>(middle.size());
      }
    }
  }
  EXPECT_GT(kept, 1000);
  EXPECT_GT(left, 1000);
}

TEST(Deciding, is_the_share_of_layers_that_the_papers_models_have) {
  EXPECT_EQ(documents::usual_deciding_layers(32), 4);  // Llama-3.1-8B: 29 to 32; Mistral-7B has 28 to 32
  EXPECT_EQ(documents::usual_deciding_layers(36), 5);  // Qwen2.5-3B: 32 to 36
  for (int layers = 1; layers <= 200; ++layers)
    EXPECT_EQ(documents::usual_deciding_layers(layers), reference::paper_share(layers)) << layers;
  EXPECT_EQ(AskSpec::parse("samkv:deciding=paper").print(), "samkv");
  EXPECT_EQ(AskSpec::parse("samkv:deciding=5").print(), "samkv:deciding=5");
  EXPECT_THROW(AskSpec::parse("samkv:deciding=0"), UsageError);
}

TEST(PowerLaw, an_exact_law_gives_its_exponent) {
  for (const double alpha : {0.0, 0.3, 1.0, 2.5}) {
    std::vector<double> y;
    for (int x = 1; x <= 500; ++x) y.push_back(0.7 * std::pow(x, -alpha));
    const auto law = documents::power_law_of(y);
    EXPECT_NEAR(law.exponent, alpha, 1e-12);
    EXPECT_NEAR(law.log_scale, std::log(0.7), 1e-11);
    EXPECT_NEAR(law.explained, alpha > 0 ? 1 : 0, 1e-12);
  }
  EXPECT_EQ(documents::power_law_of(std::vector<double>{0.1, 0.2, 0.3}).exponent, 0) << "what rises counts as flat";
  EXPECT_EQ(documents::power_law_of(std::vector<double>{0.1}).exponent, 0) << "one point has no slope";
  EXPECT_EQ(documents::power_law_of(std::vector<double>{0, 0, 1e-12}).exponent, 0) << "all at the floor";
  // log y is 0 at x = 1 and log(1e-8) at x = 2, so the slope is log(1e-8) / log 2.
  EXPECT_NEAR(documents::power_law_of(std::vector<double>{1, 0}).exponent, 8 * std::log(10.0) / std::log(2.0), 1e-9);
  EXPECT_EQ(documents::power_law_of(std::vector<double>{0.1, 0.2, 0.3}).explained, 0) << "no law that falls";
  // The line through 0, -3 and -1 at ln 1, ln 2 and ln 3.
  const double x[] = {0, std::log(2.0), std::log(3.0)};
  const double mean = (x[1] + x[2]) / 3;
  const double slope = (-3 * x[1] - x[2] + 4 * mean) / (x[1] * x[1] + x[2] * x[2] - 3 * mean * mean);
  const auto bent = documents::power_law_of(std::vector<double>{1, std::exp(-3.0), std::exp(-1.0)});
  EXPECT_NEAR(bent.exponent, -slope, 1e-12);
  EXPECT_NEAR(bent.log_scale, -4.0 / 3 - slope * mean, 1e-12);
  double left = 0;  // sum of squares that the line does not explain, of 10 - 16 / 3
  for (int i = 0; i < 3; ++i) left += std::pow((i == 1 ? -3 : i == 2 ? -1 : 0) - bent.log_scale - slope * x[i], 2);
  EXPECT_NEAR(bent.explained, 1 - left / (10 - 16.0 / 3), 1e-12);
}

TEST(Outliers, one_of_eleven_and_never_of_ten) {
  // One of n numbers is (n - 1) / n below the mean, and the deviation is sqrt(n - 1) / n. From n = 11 on, the former
  // exceeds 3 deviations.
  std::vector<documents::Representative> some;
  for (int i = 0; i < 9; ++i) some.push_back({64 * i, 1.0F, 0});
  some.push_back({1000, 0.0F, 0});
  EXPECT_TRUE(documents::outliers(some, 3).empty());
  some.push_back({1100, 1.0F, 0});
  EXPECT_EQ(documents::outliers(some, 3), std::vector<std::int32_t>{1000});
  some[3].exponent = 5;  // unusually large is not an outlier
  EXPECT_TRUE(documents::outliers(some, 3).empty());
  EXPECT_TRUE(documents::outliers({}, 3).empty());
}

INSTANTIATE_TEST_SUITE_P(networks, ReferenceTest,
                         testing::Values("equal_layers", "different_layers", "soft_caps", "learnt_sinks"),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace winnow::test
