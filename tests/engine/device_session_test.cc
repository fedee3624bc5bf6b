// SPDX-License-Identifier: Apache-2.0
// Every method with a model on a device, compared with the same model on the CPU.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/cache_options.h"
#include "support/host_device.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/policy/registry.h"
#include "winnow/recommended.h"
#include "winnow/scheduler.h"
#include "winnow/session.h"

namespace winnow::test {
namespace {

constexpr int kVocabulary = 288;
constexpr int kText = 120;
constexpr int kQuestion = 12;
constexpr int kAnswer = 6;
constexpr int kChunk = 50;
constexpr int kTurn = 70;  // read layer by layer

std::vector<std::string> all_specs() {
  std::vector<std::string> out;
  for (const auto& preset : policy::built_in().presets) out.push_back(preset.name);
  for (const auto which : kRecommended) {
    for (const auto protocol : kProtocols) out.push_back(recommended(protocol, which).print());
  }
  return out;
}

double largest_difference(std::span<const float> one, std::span<const float> other) {
  double out = 0;
  for (std::size_t i = 0; i < one.size(); ++i)
    out = std::max(out, std::abs(static_cast<double>(one[i]) - static_cast<double>(other[i])));
  return out;
}

/// Kullback-Leibler divergence of two predictions, in nats.
double divergence(std::span<const float> one, std::span<const float> other) {
  const auto logarithm_of_sum = [](std::span<const float> logits) {
    double sum = 0;
    for (const float x : logits) sum += std::exp(static_cast<double>(x));
    return std::log(sum);
  };
  const double a = logarithm_of_sum(one);
  const double b = logarithm_of_sum(other);
  double out = 0;
  for (std::size_t i = 0; i < one.size(); ++i) {
    const double p = static_cast<double>(one[i]) - a;
    out += std::exp(p) * (p - static_cast<double>(other[i]) + b);
  }
  return out;
}

/// A sequence on one of the two.
class Side {
 public:
  Side(const std::string& path, const std::string& calibration, std::shared_ptr<device::Device> device = {},
       Precision precision = Precision::f32)
      : Side(Model::load(path, {.device = std::move(device)}), calibration, precision) {}
  explicit Side(std::shared_ptr<const Model> model, const std::string& calibration = "",
                Precision precision = Precision::f32)
      : model_(std::move(model)),
        session_(model_, {.threads = 1, .precision = precision, .chunk = kChunk, .calibration = calibration}) {}

  Session& session() { return session_; }
  Cache& cache() { return *cache_; }
  const std::vector<float>& logits() const { return logits_; }

  void read(const CacheOptions& keep, int text = kText) {
    const std::vector<std::vector<Token>> questions{random_tokens(kQuestion, kVocabulary, 2)};
    auto read = session_.prefill(random_tokens(text, kVocabulary), questions, std::span(&keep, 1));
    cache_ = std::move(read.front().caches.front());
    logits_ = std::move(read.front().logits);
  }

  void step(Token token) {
    Cache* const one = &*cache_;
    session_.step(std::span(&one, 1), std::span(&token, 1), logits_);
  }

  void take_turn() {
    const auto mark = cache_->mark();
    const auto turn = random_tokens(kTurn, kVocabulary, 3);
    logits_ = session_.extend(*cache_, turn);
    session_.compress(*cache_, turn, mark);
  }

  Token next() const { return static_cast<Token>(std::ranges::max_element(logits_) - logits_.begin()); }

  void save(const std::string& path) const {
    Transcript transcript;
    transcript.tokens = random_tokens(cache_->stats().tokens_seen, kVocabulary);
    session_.save(path, *cache_, logits_, transcript);
  }

  void load(const std::string& path) {
    auto restored = session_.load(path);
    cache_ = std::move(restored.cache);
    logits_ = std::move(restored.logits);
  }

 private:
  std::shared_ptr<const Model> model_;
  Session session_;
  std::optional<Cache> cache_;
  std::vector<float> logits_;
};

class OnADevice : public testing::TestWithParam<std::string> {
 protected:
  OnADevice() {
    write_tiny_gguf(GetParam() == "llama" ? TinyModel{} : tiny_of(GetParam()), path_);
    const auto calibration = calibrated(folder_ / "model.cal", *Model::load(path_));
    cpu_ = std::make_unique<Side>(path_, calibration);
    device_ = std::make_unique<Side>(path_, calibration, tested_device());
  }

  void expect_the_same() {
    constexpr double kRounding = 1e-3;  // of logits of tiny networks, which are near 1
    EXPECT_LT(largest_difference(device_->logits(), cpu_->logits()), kRounding);
    EXPECT_EQ(device_->cache().kept(), cpu_->cache().kept());
  }

  void expect_the_same_conversation(const CacheOptions& keep) {
    for (auto* const side : {cpu_.get(), device_.get()}) side->read(keep);
    expect_the_same();
    for (const Token token : random_tokens(kAnswer, kVocabulary, 4)) {
      for (auto* const side : {cpu_.get(), device_.get()}) side->step(token);
    }
    expect_the_same();
    for (auto* const side : {cpu_.get(), device_.get()}) side->take_turn();
    expect_the_same();
    device_->save(folder_ / "saved");
    cpu_->load(folder_ / "saved");
    for (auto* const side : {cpu_.get(), device_.get()}) side->step(7);
    expect_the_same();
  }

  TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
  std::unique_ptr<Side> cpu_;
  std::unique_ptr<Side> device_;
};

TEST_P(OnADevice, every_method_keeps_the_same_entries) {
  int compared = 0;
  for (const auto& spec : all_specs()) {
    for (const char* const budget : {"20", "40", "50%"}) {
      const bool needs = Spec::parse(spec).method().needs_budget();
      SCOPED_TRACE(spec + " @ " + budget);
      try {
        expect_the_same_conversation(options_of(spec, needs ? budget : "", "f32"));
        ++compared;
      } catch (const UsageError& error) {  // of methods that the model or the budget does not allow
        EXPECT_NE(std::string(error.what()), "");
      }
      if (!needs) break;
    }
  }
  EXPECT_GT(compared, static_cast<int>(all_specs().size()));
}

INSTANTIATE_TEST_SUITE_P(of_models, OnADevice, testing::Values("llama", "gemma3", "qwen3moe", "gemma4"),
                         [](const auto& of) { return of.param; });

/// Entries of all lanes, and those that only one of two caches keeps.
struct Kept {
  int all = 0;
  int different = 0;

  void add(const Cache& one, const Cache& other) {
    const auto a = one.kept();
    const auto b = other.kept();
    ASSERT_EQ(a.size(), b.size());
    for (std::size_t layer = 0; layer < a.size(); ++layer) {
      for (std::size_t head = 0; head < a[layer].size(); ++head) {
        const std::set<std::int32_t> in_a(a[layer][head].begin(), a[layer][head].end());
        all += static_cast<int>(in_a.size());
        different +=
            static_cast<int>(std::ranges::count_if(b[layer][head], [&](auto at) { return !in_a.contains(at); }));
      }
    }
  }
};

/// A model whose prompts and steps kernels compute, which round factors to f16 or bf16, and the same in f32 with
/// attention on the CPU.
struct WithKernels {
  explicit WithKernels(const TinyModel& model) {
    write_tiny_gguf(model, path);
    const auto calibration = calibrated(folder / "model.cal", *Model::load(path));
    cpu = std::make_unique<Side>(path, calibration, host_device());
    kernels = std::make_unique<Side>(path, calibration, tested_device_with_kernels(), Precision::automatic);
  }

  /// Reads a text on both. Returns false if the model does not allow the method.
  bool read(const std::string& spec) {
    const bool needs = Spec::parse(spec).method().needs_budget();
    try {
      for (auto* const side : {cpu.get(), kernels.get()}) side->read(options_of(spec, needs ? "30" : "", "f16"));
    } catch (const UsageError&) {
      return false;
    }
    return true;
  }

  TempFolder folder;
  std::string path = folder / "tiny.gguf";
  std::unique_ptr<Side> cpu;
  std::unique_ptr<Side> kernels;
};

/// Entries that methods keep of a text.
Kept kept_by_kernels(const TinyModel& model, const std::vector<std::string>& specs) {
  WithKernels with(model);
  Kept kept;
  for (const auto& spec : specs) {
    SCOPED_TRACE(spec);
    if (!with.read(spec)) continue;
    EXPECT_LT(divergence(with.kernels->logits(), with.cpu->logits()), 2e-3);
    kept.add(with.kernels->cache(), with.cpu->cache());
  }
  return kept;
}

/// Entries that methods keep after steps, from the cache of the same reading.
Kept kept_after_steps(const TinyModel& model, const std::vector<std::string>& specs) {
  WithKernels with(model);
  Kept kept;
  for (const auto& spec : specs) {
    SCOPED_TRACE(spec);
    if (!with.read(spec)) continue;
    with.cpu->save(with.folder / "saved");
    with.kernels->load(with.folder / "saved");
    for (const Token token : random_tokens(kAnswer, kVocabulary, 4)) {
      for (auto* const side : {with.cpu.get(), with.kernels.get()}) side->step(token);
    }
    EXPECT_LT(divergence(with.kernels->logits(), with.cpu->logits()), 1e-5);
    kept.add(with.kernels->cache(), with.cpu->cache());
  }
  return kept;
}

TinyModel with_small_heads() {
  TinyModel out;
  out.head_dim = 16;
  return out;
}

TEST(PromptsByKernels, keep_the_same_entries_but_for_ties) {
  const auto kept = kept_by_kernels(with_small_heads(), all_specs());
  EXPECT_GT(kept.all, 100 * static_cast<int>(all_specs().size()));
  EXPECT_LT(kept.different, kept.all / 200);
}

/// Bytes that reading a text copies to the host, and bytes of so many of its entries in all layers.
void expect_copied(WithKernels& with, const std::string& spec, const std::string& budget, int entries,
                   std::size_t besides) {
  const TinyModel h = with_small_heads();
  const auto before = traffic();
  with.kernels->read(options_of(spec, budget, "f16"));
  const auto copied = (traffic() - before).bytes_to_host;
  const auto of_entry = 2 * static_cast<std::size_t>(h.n_layer * h.n_head_kv * h.head_dim) * sizeof(std::uint16_t);
  const auto of_entries = static_cast<std::size_t>(entries) * of_entry;
  EXPECT_GE(copied, of_entries) << spec;
  EXPECT_LE(copied, of_entries + besides) << spec;
}

/// Queries, outputs, and keys and values that are evicted stay on the device.
TEST(PromptsByKernels, copy_kept_entries_to_the_host) {
  if (std::getenv("WINNOW_TEST_DEVICE") != nullptr) return;  // only host devices count
  WithKernels with(with_small_heads());
  constexpr std::size_t kLogitsAndFlags = kVocabulary * sizeof(float) + 64;
  expect_copied(with, "full", "", kText + kQuestion, kLogitsAndFlags);
  expect_copied(with, "streaming-llm", "30", 30, kLogitsAndFlags);
  constexpr std::size_t kStatistics = std::size_t{2} * 4 * (kText + kQuestion) * sizeof(float);
  expect_copied(with, "snapkv:window=8", "30", 30, kLogitsAndFlags + kStatistics);
  const TinyModel h = with_small_heads();
  const auto lengths = static_cast<std::size_t>(h.n_layer * h.n_head_kv) * (kText + kQuestion) * sizeof(double);
  expect_copied(with, "knorm", "30", 30, kLogitsAndFlags + lengths);
  expect_copied(with, "qfilter", "30", 30, kLogitsAndFlags + lengths);
  expect_copied(with, "cur", "30", 30, kLogitsAndFlags + 2 * lengths);
  expect_copied(with, "ahakv:sgs=off,recent=8", "30", 30, kLogitsAndFlags + kStatistics + 2 * lengths);
  constexpr std::size_t kRepetition = 5;  // chunks
  expect_copied(with, "kvzip(span(snapkv:window=8))", "60", 60, kLogitsAndFlags + (1 + kRepetition) * kStatistics);
}

/// Entries that take part in merges or fits are copied before those that are kept.
TEST(PromptsByKernels, copy_entries_that_merges_and_fits_read) {
  if (std::getenv("WINNOW_TEST_DEVICE") != nullptr) return;  // only host devices count
  WithKernels with(with_small_heads());
  constexpr std::size_t kLogitsAndFlags = kVocabulary * sizeof(float) + 64;
  constexpr std::size_t kStatistics = std::size_t{2} * 4 * (kText + kQuestion) * sizeof(float);
  constexpr int kMerged = 6;
  expect_copied(with, "ems:gamma=1.2,window=8", "30", 30 + kMerged + 30, kLogitsAndFlags + 4 * kStatistics);
  const TinyModel h = with_small_heads();
  const int of_token = h.n_embd + 2 * (h.n_head + h.n_head_kv) * h.head_dim;
  const int of_last_chunk = h.n_layer * ((kText + kQuestion) % kChunk) * of_token;
  const std::size_t tensors = static_cast<std::size_t>(of_last_chunk) * sizeof(float);
  expect_copied(with, "refit(snapkv:window=8):rows=4,recent=4", "30", 30 + 30, kLogitsAndFlags + kStatistics + tensors);
}

TEST(PromptsByKernels, have_windows_sinks_and_shared_keys) {
  for (const char* const architecture : {"gemma3", "gpt-oss", "gemma4"}) {
    const auto kept = kept_by_kernels(tiny_of(architecture), {"h2o", "snapkv:window=8", "ems"});
    EXPECT_GT(kept.all, 100);
    EXPECT_LT(kept.different, kept.all / 200) << architecture;
  }
}

TEST(StepsByKernels, keep_the_same_entries_but_for_ties) {
  std::vector<std::string> specs{"full", "snapkv:window=8"};
  for (const auto& spec : all_specs()) {
    if (Spec::parse(spec).method().changes_while_decoding()) specs.push_back(spec);
  }
  EXPECT_GT(specs.size(), 8U);
  const auto kept = kept_after_steps(with_small_heads(), specs);
  EXPECT_GT(kept.all, 100 * static_cast<int>(specs.size()));
  EXPECT_LT(kept.different, kept.all / 200);
}

TEST(StepsByKernels, have_windows_and_sinks) {
  for (const char* const architecture : {"gemma3", "gpt-oss"}) {
    const auto kept = kept_after_steps(tiny_of(architecture), {"full", "h2o"});
    EXPECT_GT(kept.all, 100);
    EXPECT_LT(kept.different, kept.all / 200) << architecture;
  }
}

/// Copies from the host and to it in a step of a model with so many layers.
long copies_of_a_step(const std::string& spec, int layers, TinyModel model = with_small_heads()) {
  model.n_layer = layers;
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(model, path);
  Side kernels(path, "", tested_device_with_kernels(), Precision::automatic);
  kernels.read(options_of(spec, spec == "full" ? "" : "20", "f16"), 20);
  kernels.step(7);  // makes copies of lanes
  const auto before = traffic();
  kernels.step(8);
  return (traffic() - before).copies;
}

TEST(StepsByKernels, do_not_wait_for_the_host_in_each_layer) {
  if (std::getenv("WINNOW_TEST_DEVICE") != nullptr) return;  // only host devices count
  for (const char* const spec : {"full", "snapkv:window=8", "streaming-llm:positions=absolute", "h2o", "tova"})
    EXPECT_EQ(copies_of_a_step(spec, 5), copies_of_a_step(spec, 2)) << spec;
  EXPECT_GT(copies_of_a_step("quest", 5), copies_of_a_step("quest", 2));
  const auto experts = tiny_of("qwen3moe");
  EXPECT_EQ(copies_of_a_step("full", 5, experts), copies_of_a_step("full", 2, experts));
}

/// Logits after some steps.
std::vector<float> answered(const std::shared_ptr<const Model>& model, const std::string& spec) {
  Session session(model, {.threads = 2});
  const auto keep = options_of(spec, "12", "f16");
  const std::vector<std::vector<Token>> nothing_more(1);
  auto read = session.prefill(random_tokens(24, kVocabulary), nothing_more, std::span(&keep, 1));
  auto& cache = read.front().caches.front();
  std::vector<float> out = session.extend(cache, random_tokens(2, kVocabulary, 4));
  Cache* const one = &cache;
  for (const Token token : random_tokens(2, kVocabulary, 5)) session.step({&one, 1}, {&token, 1}, out);
  return out;
}

/// Whichever kernel is the first to refuse its task, the CPU goes on from there: every kernel of the last step, and
/// some of those before.
TEST(RefusedTasks, are_done_by_the_cpu) {
  constexpr long kFew = 19;
  const std::vector<std::pair<const char*, const char*>> cases{{"gemma3", "h2o"}, {"gemma4", "snapkv:window=4"}};
  for (const auto& [architecture, spec] : cases) {
    TempFolder folder;
    const std::string path = folder / "tiny.gguf";
    write_tiny_gguf(tiny_of(architecture), path);
    const auto of = [&, spec = spec](const std::shared_ptr<device::Device>& device) {
      return answered(Model::load(path, {.device = device}), spec);
    };
    const auto before = traffic();
    const auto want = of(host_device_with_kernels());
    const long tasks = (traffic() - before).kernels;
    EXPECT_GT(tasks, 20);
    const double rounding = largest_difference(of(host_device()), want);  // some CPUs round to bf16, kernels to f16
    EXPECT_LT(rounding, 0.1) << architecture;
    for (long done = 0; done < tasks; done += done < tasks - tasks / 8 ? kFew : 1)
      EXPECT_LT(largest_difference(of(host_device_that_refuses(done)), want), rounding + 1e-2)
          << architecture << ' ' << done;
  }
}

TEST(RequestsOnADevice, are_answered_like_those_on_the_cpu) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(TinyModel{}, path);
  std::vector<std::vector<std::vector<Token>>> answers;
  for (const auto& device : {std::shared_ptr<device::Device>(), tested_device()}) {
    const auto model = Model::load(path, {.device = device});
    Session session(model, {.threads = 1, .precision = Precision::f32, .chunk = 64});
    Scheduler scheduler(session, {.texts = {.memory = std::size_t{1} << 20U}});
    auto& out = answers.emplace_back(4);
    for (unsigned i = 0; i < out.size(); ++i) {
      Request request;
      request.source =
          RequestText{.tokens = random_tokens(100 + 10 * static_cast<int>(i), kVocabulary, i), .cache_salt = ""};
      request.keep = options_of("snapkv:window=8", "30", "f32");
      request.generate.max_tokens = 8;
      request.generate.sampling.temperature = 0;
      request.events.on_end = [&out, i](RequestEnd end) {
        EXPECT_EQ(end.error, nullptr);
        out[i] = end.answers.front().tokens;
      };
      scheduler.add(std::move(request));
    }
    while (scheduler.advance()) continue;
  }
  EXPECT_EQ(answers.back(), answers.front());
  EXPECT_FALSE(answers.front().front().empty());
}

/// Wherever the device is full, reading and steps are done or refused with a sentence, and the session goes on.
class ASessionOnAFullDevice : public testing::TestWithParam<const char*> {};

TEST_P(ASessionOnAFullDevice, stays_usable) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(with_small_heads(), path);
  const auto keep = options_of(GetParam(), "30", "f16");
  const std::vector<std::vector<Token>> nothing_more(1);
  const auto answer = [&](Session& session) {
    auto read = session.prefill(random_tokens(kText, kVocabulary), nothing_more, std::span(&keep, 1));
    auto& cache = read.front().caches.front();
    return session.extend(cache, random_tokens(3, kVocabulary, 4));
  };
  const SessionOptions options{.threads = 1, .chunk = 50};
  const auto want = [&] {
    Session all(Model::load(path, {.device = host_device_with_kernels()}), options);
    return answer(all);
  }();
  int refused = 0;
  int done = 0;
  for (std::size_t bytes = 100'000; bytes < 700'000; bytes += 50'000) {
    SCOPED_TRACE(bytes);
    const auto device = host_device_with_kernels(bytes);
    try {
      Session session(Model::load(path, {.device = device}), options);
      for (int i = 0; i < 2; ++i) {
        try {
          EXPECT_LT(largest_difference(answer(session), want), 1e-2);
          ++done;
        } catch (const MemoryError& error) {
          EXPECT_NE(std::string(error.what()).find("available"), std::string::npos) << error.what();
          ++refused;
        }
      }
    } catch (const MemoryError&) {  // no room for the weights
      ++refused;
    }
    EXPECT_EQ(device->account().held(), 0U);
  }
  EXPECT_GT(done, 2);
  EXPECT_GT(refused, 2);
}

INSTANTIATE_TEST_SUITE_P(of_methods, ASessionOnAFullDevice, testing::Values("h2o", "snapkv:window=8"),
                         [](const auto& of) { return std::string(of.param).substr(0, 3); });

/// Logits of steps of a sequence, which passes through them together with `others`.
std::vector<float> stepped(Session& session, int others) {
  std::vector<Cache> caches;
  const auto keep = options_of("snapkv:window=8", "30", "f16");
  for (int i = 0; i <= others; ++i) {
    const std::vector<std::vector<Token>> nothing_more(1);
    auto read = session.prefill(random_tokens(kText + 10 * i, kVocabulary, static_cast<unsigned>(i)), nothing_more,
                                std::span(&keep, 1));
    caches.push_back(std::move(read.front().caches.front()));
  }
  std::vector<Cache*> all;
  for (auto& cache : caches) all.push_back(&cache);
  std::vector<float> out;
  for (const Token token : random_tokens(kAnswer, kVocabulary, 4)) {
    std::vector<float> logits(all.size() * kVocabulary);
    session.step(all, std::vector<Token>(all.size(), token), logits);
    out.insert(out.end(), logits.begin(), logits.begin() + kVocabulary);
  }
  return out;
}

TEST(RowsOfAStep, are_alike_if_asked_for) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(with_small_heads(), path);
  const auto model = Model::load(path, {.device = tested_device_with_kernels()});
  Session alike(model, {.threads = 1, .rows = StepRows::alike});
  Session together(model, {.threads = 1});
  const auto alone = stepped(together, 0);
  const auto kernels_of = [](Session& session) {
    const auto before = traffic();
    stepped(session, 2);
    return (traffic() - before).kernels;
  };
  EXPECT_EQ(stepped(alike, 0), alone);
  EXPECT_EQ(stepped(alike, 2), alone);
  EXPECT_LT(largest_difference(stepped(together, 2), alone), 1e-2);
  if (std::getenv("WINNOW_TEST_DEVICE") != nullptr) return;  // only host devices count
  EXPECT_GT(kernels_of(alike), kernels_of(together));
}

TEST(SessionsOnOneDevice, may_run_at_the_same_time) {
  TempFolder folder;
  const std::string path = folder / "tiny.gguf";
  write_tiny_gguf(TinyModel{}, path);
  for (const auto& device : {tested_device(), tested_device_with_kernels()}) {
    const auto model = Model::load(path, {.device = device});
    const int count = device->has_kernels() ? 8 : 40;
    std::vector<std::vector<Token>> answers(3);
    const auto answer = [&](std::vector<Token>& out) {
      Side side(model, "", device->has_kernels() ? Precision::automatic : Precision::f32);
      side.read(options_of("snapkv:window=8", "30", "f16"));
      for (int i = 0; i < count; ++i) {
        out.push_back(side.next());
        side.step(out.back());
      }
    };
    answer(answers[0]);
    std::thread other([&] { answer(answers[1]); });
    answer(answers[2]);
    other.join();
    EXPECT_EQ(answers[1], answers[0]);
    EXPECT_EQ(answers[2], answers[0]);
  }
}

}  // namespace
}  // namespace winnow::test
