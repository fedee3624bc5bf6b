// SPDX-License-Identifier: Apache-2.0
// Calibrations: their facts, compared with a network with textbook attention and a slow fit; their files; the models
// that may use them.
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <fstream>
#include <limits>

#include "engine/repetition.h"
#include "network/network.h"
#include "policy/calibrations/predicted_scores.h"
#include "policy/calibrations/query_statistics.h"
#include "policy/slow_ridge.h"
#include "policy/trigonometric.h"
#include "support/cache_options.h"
#include "support/damage.h"
#include "support/refusal.h"
#include "support/reseal.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/calibration.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"
#include "winnow/scheduler.h"

namespace winnow::test {
namespace {

/// [layer][token][n_embd]
using Inputs = std::vector<std::vector<std::vector<double>>>;

class CalibrateTest : public testing::Test {
 protected:
  explicit CalibrateTest(unsigned seed = 1) {
    TinyModel tiny;
    tiny.n_layer = 3;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    tiny.seed = seed;
    tiny.ctx_train = 4096;
    write_tiny_gguf(tiny, path_);
    model_ = Model::load(path_);
  }

  const model::Hparams& hparams() const { return model_->impl().weights->hparams(); }
  std::vector<Token> tokens(int n, unsigned seed) const { return random_tokens(n, model_->info().n_vocab, seed); }

  /// Random letters and lines.
  static std::string text(int bytes) {
    std::mt19937 random(9);
    std::string out = "a";
    for (int i = 1; i < bytes; ++i) out += random() % 8 == 0 ? '\n' : static_cast<char>('a' + random() % 26);
    return out;
  }

  /// Inputs of attention.
  Inputs inputs(const std::vector<Token>& prompt) const {
    Network network(path_, 1, 1, static_cast<int>(prompt.size()));
    Inputs out(z(hparams().n_layer), std::vector<std::vector<double>>(prompt.size()));
    network.attention().set_input_observer(
        [&](int layer, const DenseAttention::Row& row, std::span<const float> input) {
          out[z(layer)][z(row.position)].assign(input.begin(), input.end());
        });
    network.prefill(prompt, 64);
    return out;
  }

  engine::Calibration read(const std::string& path) const {
    return engine::read_calibration(FileSource(path), identity_of(*model_), hparams());
  }

  policy::ScorePredictor predictor(const engine::Calibration& calibration, int layer) const {
    return {calibration.layers[z(layer)], hparams().layer(layer).n_head_kv, hparams().n_embd};
  }

  SessionOptions with_calibration() const { return {2, Precision::f32, 32, Pack::automatic, file_}; }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::string file_ = folder_ / "model.cal";
  std::shared_ptr<const Model> model_;
};

TEST_F(CalibrateTest, fits_what_enters_a_layer_to_what_repeating_the_text_looks_at) {
  const std::string words = text(250);
  Conversation conversation;
  conversation.text = words;
  conversation.format = PromptFormat::raw;
  const auto prompt = model_->tokenize(conversation);
  const auto scores = plus_reference(path_, *model_, prompt, 2048);
  const auto rows = inputs(prompt);

  Session session(model_, {2, Precision::f32, 32});
  const auto said = calibrate(session, words, file_, {.format = PromptFormat::raw});
  EXPECT_EQ(said.passages, 1);
  ASSERT_EQ(said.explained.size(), z(hparams().n_layer));
  const auto calibration = read(file_);
  for (int layer = 0; layer < hparams().n_layer; ++layer) {
    double explained = 0;
    for (int head = 0; head < 2; ++head) {
      constexpr int kSinks = 4;
      std::vector<double> targets;
      for (std::size_t j = kSinks; j < prompt.size(); ++j) targets.push_back(std::log(scores[z(layer)][z(head)][j]));
      const SlowRidge slow({rows[z(layer)].begin() + kSinks, rows[z(layer)].end()}, targets, 1);
      explained += slow.explained / 2;
      for (const auto& row : rows[z(layer)]) {
        const std::vector<float> x(row.begin(), row.end());
        ASSERT_NEAR(predictor(calibration, layer).score(head, x.data()), slow.of(row), 5e-3) << layer << " " << head;
      }
    }
    EXPECT_NEAR(said.explained[z(layer)], explained, 5e-3);
    EXPECT_GT(explained, 0.05);
  }
}

/// [layer][token][H_q · d], rotated
using Queries = std::vector<std::vector<std::vector<float>>>;

/// Collects the queries of a network that reads one sequence in order.
DenseAttention::Reader collecting(Queries& queries, const model::Hparams& hparams) {
  queries.resize(z(hparams.n_layer));
  return [&queries, &hparams, calls = std::vector<int>(z(hparams.n_layer))](
             int layer, int, const DenseAttention::Reading& reading) mutable {
    if (calls[z(layer)]++ % hparams.layer(layer).n_head == 0)
      queries[z(layer)].emplace_back(reading.queries.begin(), reading.queries.end());
  };
}

TEST_F(CalibrateTest, knows_the_mean_of_the_queries_before_rope) {
  const std::string words = text(150);
  Conversation conversation;
  conversation.text = words;
  conversation.format = PromptFormat::raw;
  const auto prompt = model_->tokenize(conversation);
  Queries queries;
  Network network(path_, 1, 1, static_cast<int>(prompt.size()));
  network.attention().set_reader(collecting(queries, hparams()));
  network.prefill(prompt, 64);

  Session session(model_, {2, Precision::f32, 32});
  calibrate(session, words, file_, {.format = PromptFormat::raw});
  const auto calibration = read(file_);
  constexpr int kSinks = 4;
  for (int layer = 0; layer < hparams().n_layer; ++layer) {
    const auto& spec = hparams().layer(layer);
    const auto omega = reference::frequencies(spec.head_dim, spec.rope);
    const auto rows = static_cast<double>(prompt.size() - kSinks);
    for (int head = 0; head < spec.n_head; ++head) {
      reference::Complex mean(omega.size());
      std::vector<double> lengths(omega.size());
      for (std::size_t j = kSinks; j < prompt.size(); ++j) {
        const auto rotated =
            reference::pairs_of(queries[z(layer)][j].data() + head * spec.head_dim, spec.head_dim, spec.rope);
        const auto query = reference::unrotated(rotated, static_cast<double>(j), omega);
        for (std::size_t f = 0; f < omega.size(); ++f)
          mean[f] += query[f] / rows, lengths[f] += std::abs(query[f]) / rows;
      }
      const attention::Shape shape{spec.n_head, spec.n_head_kv, spec.head_dim};
      const auto got = policy::query_statistics_of(calibration.layers[z(layer)], shape, head);
      const auto got_mean = reference::pairs_of(got.mean.data(), spec.head_dim, spec.rope);
      for (std::size_t f = 0; f < omega.size(); ++f) {
        EXPECT_LT(std::abs(got_mean[f] - mean[f]), 1e-4) << layer << " " << head << " " << f;
        EXPECT_NEAR(got.mean_lengths[f], lengths[f], 1e-4) << layer << " " << head << " " << f;
      }
    }
  }
}

/// Counts the rows, tokens with queries, scores and ended layers that it is shown.
class Counting : public policy::Calibrator {
 public:
  explicit Counting(const policy::CalibratedLayer& layer) : numbers_{static_cast<float>(layer.input_dim), 0, 0, 0, 0} {}
  static std::size_t bytes(const policy::CalibratedLayer& /*layer*/) { return 0; }

  policy::ObserverNeeds needs() const override { return {.inputs = true, .queries = true}; }
  void see_inputs(const policy::LayerInputs& inputs, Worker worker) override {
    if (worker.index == 0) numbers_[1] += static_cast<float>(inputs.count);
  }
  void see_rows(const policy::LayerRows& rows, Worker worker) override {
    if (worker.index == 0) numbers_[2] += static_cast<float>(rows.count);
  }
  void end_layer(const policy::EndedLayer& /*layer*/) override { numbers_[3] += 1; }
  void see_scores(const policy::Scores& scores) override { numbers_[4] += static_cast<float>(scores.size()); }
  std::vector<float> numbers() override { return numbers_; }

 private:
  std::vector<float> numbers_;
};

/// A method that the test registers brings its own calibrator.
TEST_F(CalibrateTest, has_the_facts_of_every_registered_method) {
  policy::Preset preset = {.name = "counted", .summary = "", .paper = "", .options = {}, .build = {}};
  preset.build = [](const policy::Options&) {
    auto method = Spec::parse("knorm").method();
    method.calibration = policy::calibrated_by<Counting>("counts", "how often it is called");
    return method;
  };
  policy::add_method(preset);
  Session session(model_, {2, Precision::automatic, 32});
  const auto said = calibrate(session, text(3000), file_, {.tokens = 2100, .format = PromptFormat::raw});
  ASSERT_EQ(said.passages, 2);
  std::vector<std::string> names;
  for (const auto& part : policy::registered_calibrations()) names.push_back(part.name);
  std::ranges::sort(names);
  const auto tokens = static_cast<float>(said.tokens);
  for (const auto& layer : read(file_).layers) {
    std::vector<std::string> there;
    for (const auto& [name, numbers] : layer.facts()) there.push_back(name);
    EXPECT_EQ(there, names);
    const auto counts = layer.numbers("counts", 5);
    EXPECT_EQ(counts[0], static_cast<float>(hparams().n_embd));
    for (const int i : {1, 2, 4}) EXPECT_GE(counts[z(i)], tokens) << i;
    EXPECT_EQ(counts[1], counts[2]);
    EXPECT_EQ(counts[1], counts[4]);
    EXPECT_EQ(counts[3], 2);
  }
}

TEST_F(CalibrateTest, reads_passages_that_are_spread_over_the_text) {
  Session session(model_, {2, Precision::automatic, 512});
  const std::string words = text(3000);
  const int all = static_cast<int>(model_->vocab().tokenize(words).size());
  ASSERT_GT(all, 2048);
  const auto two = calibrate(session, words, file_, {.tokens = 2100, .format = PromptFormat::raw});
  EXPECT_EQ(two.passages, 2);
  EXPECT_EQ(two.tokens, 2048);
  const auto one = calibrate(session, words, file_, {.tokens = 1030, .format = PromptFormat::raw});
  EXPECT_EQ(one.passages, 1);
  EXPECT_EQ(one.tokens, 1024);
  const auto few = calibrate(session, words, file_, {.tokens = 100, .format = PromptFormat::raw});
  EXPECT_EQ(few.passages, 1);
  EXPECT_EQ(few.tokens, 100);
}

TEST_F(CalibrateTest, what_cannot_be_is_refused) {
  Session session(model_, {});
  EXPECT_NE(refusal([&] { calibrate(session, "too short", file_); }).find("at least 64 are needed"), std::string::npos);
  EXPECT_NE(usage_error([&] { calibrate(session, text(500), file_, {.tokens = 63}); }).find("with 63 tokens"),
            std::string::npos);
  EXPECT_NE(refusal([&] { calibrate(session, text(500), path_); }).find(path_), std::string::npos)
      << "not a calibration";
  EXPECT_FALSE(std::filesystem::exists(file_));
}

TEST_F(CalibrateTest, one_that_is_stopped_leaves_what_was_there) {
  calibrated(file_, *model_);
  const auto before = bytes_of_file(file_);
  Session session(model_, {});
  session.on_stop([] { return true; });
  EXPECT_THROW(calibrate(session, text(500), file_, {.format = PromptFormat::raw}), Interrupted);
  EXPECT_EQ(bytes_of_file(file_), before);
}

TEST_F(CalibrateTest, goes_through_a_file_unchanged) {
  calibrated(file_, *model_);
  EXPECT_EQ(read(file_).layers, some_calibration(hparams()).layers);
}

class CalibrationFile : public CalibrateTest {
 protected:
  CalibrationFile() { calibrated(file_, *model_), bytes_ = bytes_of_file(file_); }

  std::string refused(const std::string& bytes) const {
    std::ofstream(file_, std::ios::binary) << bytes;
    return refusal([&] { const Session session(model_, with_calibration()); });
  }
  static std::string resealed(std::string bytes) {
    reseal(std::as_writable_bytes(std::span(bytes)));
    return bytes;
  }
  void expect_refused(const std::string& bytes, const std::string& why) const {
    const auto said = refused(bytes);
    EXPECT_NE(said.find(why), std::string::npos) << said;
    EXPECT_EQ(said.find(file_), 0U) << said;
    EXPECT_EQ(said.find('\n'), std::string::npos) << said;
  }

  std::string bytes_;
};

TEST_F(CalibrationFile, that_is_cut_anywhere_is_refused) {
  for (std::size_t size = 0; size < bytes_.size(); size += size < 400 ? 1 : 97) {
    const auto said = refused(bytes_.substr(0, size));
    EXPECT_NE(said.find(size == 0 ? "is empty" : "truncated"), std::string::npos) << size << ": " << said;
  }
}

TEST_F(CalibrationFile, whose_bytes_are_changed_is_refused) {
  for (std::size_t at = 0; at < bytes_.size(); at += at < 400 ? 1 : 97) {
    auto changed = bytes_;
    changed[at] = static_cast<char>(changed[at] ^ 0x10);
    EXPECT_NE(refused(changed), "") << at;
  }
}

TEST_F(CalibrationFile, of_another_kind_version_or_model_is_refused) {
  auto version = bytes_;
  version[8] = 9;
  expect_refused(version, "has format version 9, but this winnow reads version 3");
  version[8] = 2;
  expect_refused(resealed(version), "has format version 2, but this winnow reads version 3");
  expect_refused("GGUF and so on, longer than a header is, which has 32 bytes", "is not a calibration");
  const auto other_path = folder_ / "other.gguf";
  TinyModel other;
  other.seed = 2;
  write_tiny_gguf(other, other_path);
  calibrated(file_, *Model::load(other_path));
  expect_refused(bytes_of_file(file_), "not with tiny");
}

TEST_F(CalibrationFile, with_checksums_that_hold_is_checked_all_the_same) {
  const auto with = [&](const std::function<void(engine::Calibration&)>& change) {
    auto calibration = some_calibration(hparams());
    change(calibration);
    MemorySink sink;
    engine::write_calibration(sink, calibration, identity_of(*model_));
    return std::string(reinterpret_cast<const char*>(sink.bytes().data()), sink.bytes().size());
  };
  const auto with_number = [&](const char* name, float x) {
    return with([&](auto& c) {
      auto facts = c.layers[2].facts();
      facts.at(name)[5] = x;
      c.layers[2] = policy::LayerCalibration(facts);
    });
  };
  expect_refused(with([](auto& c) { c.layers.pop_back(); }), "has 3 layers without a window");
  expect_refused(with_number("predicted scores", std::numeric_limits<float>::quiet_NaN()), "nan");
  expect_refused(with_number("query statistics", std::numeric_limits<float>::infinity()), "inf");
  auto longer = bytes_;
  longer += "more";
  expect_refused(resealed(longer), "damaged");
}

/// One layer lacks facts, or has too few numbers.
TEST_F(CalibrationFile, without_what_a_method_needs_is_refused_by_it) {
  const auto refused_by = [&](const std::string& spec,
                              const std::function<void(policy::LayerCalibration::Facts&)>& change) {
    auto calibration = some_calibration(hparams());
    auto facts = calibration.layers[1].facts();
    change(facts);
    calibration.layers[1] = policy::LayerCalibration(facts);
    ReplacingFile file(file_);
    engine::write_calibration(file, calibration, identity_of(*model_));
    file.commit();
    Session session(model_, with_calibration());
    const auto options = options_of(spec, "40", "f32");
    const auto prompt = tokens(150, 1);
    return usage_error([&] { session.prefill(prompt, std::span(&options, 1)); });
  };
  EXPECT_EQ(refused_by("kvzap", [](auto& facts) { facts.erase("predicted scores"); }),
            "the calibration has no predicted scores: make a new one with winnow calibrate");
  const auto count = hparams().layer(1).n_head_kv * (hparams().n_embd + 1);
  EXPECT_EQ(refused_by("kvzap", [](auto& facts) { facts["predicted scores"].pop_back(); }),
            fmt::format("the calibration's predicted scores have {} numbers for a layer, expected {}: make a new one "
                        "with winnow calibrate",
                        count - 1, count));
  EXPECT_NE(refused_by("triattention", [](auto& facts) { facts["query statistics"].push_back(1); }), "");
  EXPECT_EQ(refused_by("triattention", [](auto& facts) { facts.erase("predicted scores"); }), "");
}

TEST_F(CalibrateTest, methods_that_need_one_say_so) {
  const auto text = tokens(150, 1);
  const auto options = options_of("kvzap", "40", "f32");
  Session without(model_, {});
  const std::string why = "kvzap needs a calibration of the model: make one with winnow calibrate";
  EXPECT_NE(usage_error([&] { without.prefill(text, std::span(&options, 1)); }).find(why), std::string::npos);
  EXPECT_NE(usage_error([&] { without.prefill_bytes(150, std::span(&options, 1)); }).find(why), std::string::npos);
  const auto drafted = options_of("lookahead(kvzap)", "40");
  EXPECT_NE(usage_error([&] { without.prefill(text, std::span(&drafted, 1)); }).find("needs a calibration"),
            std::string::npos);

  calibrated(file_, *model_);
  Session with(model_, with_calibration());
  for (const char* spec : {"kvzap", "kvzap:when=step"}) {
    const auto keep = options_of(spec, "40");
    const auto read = with.prefill(text, std::span(&keep, 1));
    with.save(folder_ / "kv", read.caches.front(), read.logits, {{}, text});
    EXPECT_NO_THROW(with.load(folder_ / "kv"));
    EXPECT_NE(usage_error([&] { without.load(folder_ / "kv"); }).find("needs a calibration"), std::string::npos);
  }
}

/// [layer][KV head][token]
TextbookScores predicted(const engine::Calibration& calibration, const Inputs& rows) {
  TextbookScores out;
  for (std::size_t layer = 0; layer < rows.size(); ++layer) {
    auto& of_layer = out.emplace_back();
    const auto& numbers = calibration.layers[layer].facts().at("predicted scores");
    const auto width = rows[layer][0].size();
    const auto heads = numbers.size() / (width + 1);
    for (std::size_t head = 0; head < heads; ++head) {
      auto& of_head = of_layer.emplace_back();
      for (const auto& row : rows[layer]) {
        of_head.push_back(std::inner_product(row.begin(), row.end(), numbers.data() + head * width,
                                             static_cast<double>(numbers[heads * width + head])));
      }
    }
  }
  return out;
}

using Positions = std::vector<std::int32_t>;

/// The best of [sinks, n - recent), of equal ones the later, and the always kept entries.
Positions best_of(const std::vector<double>& score, int budget, int sinks, int recent) {
  const int n = static_cast<int>(score.size());
  Positions middle;
  for (int j = sinks; j < n - recent; ++j) middle.push_back(j);
  std::ranges::sort(middle,
                    [&](int a, int b) { return score[z(a)] != score[z(b)] ? score[z(a)] > score[z(b)] : a > b; });
  middle.resize(z(budget - sinks - recent));
  for (int j = 0; j < sinks; ++j) middle.push_back(j);
  for (int j = n - recent; j < n; ++j) middle.push_back(j);
  std::ranges::sort(middle);
  return middle;
}

TEST_F(CalibrateTest, kvzap_keeps_what_it_predicts_to_be_best) {
  calibrated(file_, *model_);
  const auto prompt = tokens(190, 1);
  const auto score = predicted(some_calibration(hparams()), inputs(prompt));
  Session session(model_, with_calibration());
  const auto options = options_of("kvzap:recent=20", "60", "f32");
  for (const std::size_t cut : {z(190), z(97)}) {
    const std::vector<std::vector<Token>> question = {
        {prompt.begin() + static_cast<std::ptrdiff_t>(cut), prompt.end()}};
    const auto kept =
        session.prefill(std::span(prompt).first(cut), question, std::span(&options, 1)).front().caches.front().kept();
    for (std::size_t layer = 0; layer < kept.size(); ++layer) {
      for (std::size_t head = 0; head < kept[layer].size(); ++head)
        EXPECT_EQ(kept[layer][head], best_of(score[layer][head], 60, 4, 20)) << layer << " " << head;
    }
  }
}

/// The reference is a textbook network whose queries see its kept entries. After each token it evicts the worst one.
TEST_F(CalibrateTest, kvzap_goes_on_while_tokens_are_decoded) {
  constexpr int kPrompt = 100;
  constexpr int kBudget = 40;
  constexpr int kRecent = 8;
  calibrated(file_, *model_);
  const auto calibration = some_calibration(hparams());
  const auto prompt = tokens(kPrompt, 1);
  auto score = predicted(calibration, inputs(prompt));
  std::vector<std::vector<Positions>> want(score.size());
  for (std::size_t layer = 0; layer < score.size(); ++layer) {
    for (const auto& of_head : score[layer]) want[layer].push_back(best_of(of_head, kBudget, 4, kRecent));
  }
  Network network(path_, 1, 1, kPrompt + 60);
  network.prefill(prompt, 64);
  network.attention().set_sees([&](int layer, int head, int query, int key) {
    const auto& set = want[z(layer)][z(head)];
    return key == query || std::ranges::binary_search(set, key);
  });
  network.attention().set_input_observer([&](int layer, const DenseAttention::Row&, std::span<const float> input) {
    for (std::size_t head = 0; head < score[z(layer)].size(); ++head) {
      const auto& numbers = calibration.layers[z(layer)].facts().at("predicted scores");
      const auto bias = static_cast<double>(numbers[score[z(layer)].size() * input.size() + head]);
      score[z(layer)][head].push_back(
          std::inner_product(input.begin(), input.end(), numbers.data() + head * input.size(), bias));
    }
  });
  Session session(model_, with_calibration());
  const auto options = options_of("kvzap:when=step,recent=" + std::to_string(kRecent), std::to_string(kBudget), "f32");
  auto cache = std::move(session.prefill(prompt, std::span(&options, 1)).caches.front());
  EXPECT_EQ(cache.kept(), want);
  int position = kPrompt;
  for (const Token token : tokens(50, 2)) {
    network.step(std::span(&token, 1), {{0, position}});
    for (std::size_t layer = 0; layer < want.size(); ++layer) {
      for (std::size_t head = 0; head < want[layer].size(); ++head) {
        auto& set = want[layer][head];
        set.push_back(position);
        auto worst = set.end();
        for (auto j = set.begin(); j != set.end(); ++j) {
          if (*j < 4 || *j > position - kRecent) continue;
          if (worst == set.end() || score[layer][head][z(*j)] < score[layer][head][z(*worst)]) worst = j;
        }
        set.erase(worst);
      }
    }
    session.extend(cache, std::span(&token, 1));
    ASSERT_EQ(cache.kept(), want) << position;
    ++position;
  }
}

/// triattention in a textbook network, whose queries see the kept entries.
class SlowTriAttention {
 public:
  SlowTriAttention(const model::Hparams& hparams, const engine::Calibration& calibration, int budget, int buffer)
      : hparams_(hparams), calibration_(calibration), budget_(budget), buffer_(buffer) {
    for (int layer = 0; layer < hparams.n_layer; ++layer) {
      keys_.emplace_back(z(hparams.layer(layer).n_head_kv));
      kept_.emplace_back(z(hparams.layer(layer).n_head_kv));
    }
  }

  void read(int layer, int kv_head, const DenseAttention::Reading& reading, int position) {
    auto& keys = keys_[z(layer)][z(kv_head)];
    while (static_cast<int>(keys.size()) <= position) {
      const auto key = reading.key(static_cast<int>(keys.size()));
      keys.emplace_back(key.begin(), key.end());
    }
  }
  bool sees(int layer, int kv_head, int query, int key) const {
    const auto& set = kept_[z(layer)][z(kv_head)];
    return key == query || set.empty() || std::ranges::binary_search(set, key);
  }
  /// Adds a token that has been read.
  void add(int position) {
    for (std::size_t layer = 0; layer < kept_.size(); ++layer) {
      for (std::size_t head = 0; head < kept_[layer].size(); ++head) {
        auto& set = kept_[layer][head];
        set.push_back(position);
        if (static_cast<int>(set.size()) == budget_ + buffer_) evict(static_cast<int>(layer), static_cast<int>(head));
      }
    }
  }
  void end_prompt(int tokens) {
    for (std::size_t layer = 0; layer < kept_.size(); ++layer) {
      for (std::size_t head = 0; head < kept_[layer].size(); ++head) {
        for (int j = 0; j < tokens; ++j) kept_[layer][head].push_back(j);
        evict(static_cast<int>(layer), static_cast<int>(head));
      }
    }
  }
  const std::vector<std::vector<Positions>>& kept() const { return kept_; }

 private:
  /// Evicts entries other than the first four and the last eight tokens.
  void evict(int layer, int head) {
    auto& set = kept_[z(layer)][z(head)];
    const auto& spec = hparams_.layer(layer);
    const auto omega = reference::frequencies(spec.head_dim, spec.rope);
    std::vector<reference::Complex> keys;
    std::vector<double> distances;
    Positions middle;
    for (const auto j : set) {
      if (j < 4 || j > set.back() - 8) continue;
      middle.push_back(j);
      const auto key = reference::pairs_of(keys_[z(layer)][z(head)][z(j)].data(), spec.head_dim, spec.rope);
      keys.push_back(reference::unrotated(key, j, omega));
      distances.push_back(set.back() - j);
    }
    const auto& numbers = calibration_.layers[z(layer)].facts().at("query statistics");
    const auto means = numbers.begin() + static_cast<std::ptrdiff_t>(spec.n_head) * spec.head_dim;
    const reference::QueryStatistics statistics{{numbers.begin(), means}, {means, numbers.end()}};
    const reference::TrigonometricGroup group{statistics, head * spec.group(), spec.group(), spec.head_dim, spec.rope};
    const auto scores = group.scores(keys, distances);
    std::vector<std::size_t> order(middle.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::sort(order, [&](std::size_t a, std::size_t b) { return scores[a] < scores[b]; });
    const std::size_t too_many = set.size() - z(budget_);
    for (std::size_t i = 0; i < too_many; ++i) std::erase(set, middle[order[i]]);
  }

  const model::Hparams& hparams_;
  const engine::Calibration& calibration_;
  int budget_;
  int buffer_;
  std::vector<std::vector<std::vector<std::vector<float>>>> keys_;  ///< [layer][KV head][position][d]
  std::vector<std::vector<Positions>> kept_;                        ///< [layer][KV head]
};

TEST_F(CalibrateTest, triattention_evicts_as_in_a_textbook_network) {
  constexpr int kPrompt = 100;
  constexpr int kBudget = 40;
  constexpr int kBuffer = 6;
  calibrated(file_, *model_);
  const auto calibration = some_calibration(hparams());
  const auto prompt = tokens(kPrompt, 1);
  SlowTriAttention slow(hparams(), calibration, kBudget, kBuffer);
  int last = kPrompt - 1;
  Network network(path_, 1, 1, kPrompt + 60);
  network.prefill(prompt, 64);
  network.attention().set_sees(
      [&](int layer, int head, int query, int key) { return slow.sees(layer, head, query, key); });
  network.attention().set_reader(
      [&](int layer, int head, const DenseAttention::Reading& reading) { slow.read(layer, head, reading, last); });
  // Reading the last token once more shows the keys of the prompt.
  network.step(std::span(&prompt.back(), 1), {{0, last}});
  slow.end_prompt(kPrompt);
  Session session(model_, with_calibration());
  const auto options =
      options_of("triattention:recent=8,buffer=" + std::to_string(kBuffer), std::to_string(kBudget), "f32");
  auto cache = std::move(session.prefill(prompt, std::span(&options, 1)).caches.front());
  EXPECT_EQ(cache.kept(), slow.kept());
  for (const Token token : tokens(50, 2)) {
    network.step(std::span(&token, 1), {{0, ++last}});
    slow.add(last);
    session.extend(cache, std::span(&token, 1));
    ASSERT_EQ(cache.kept(), slow.kept()) << last;
  }
}

}  // namespace
}  // namespace winnow::test
