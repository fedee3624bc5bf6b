// SPDX-License-Identifier: Apache-2.0
// A cache holds no more bytes than its entries need, for every method, KV type and budget.
#include <gtest/gtest.h>

#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/sequence.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/methods.h"
#include "winnow/recommended.h"
#include "winnow/session.h"

namespace winnow {
namespace {

constexpr int kTokens = 1300;

/// Bytes of one lane by the formulas for entries, merged entries and summaries.
double needed(const Cache& cache, const model::LayerSpec& layer, double entries, double merged_entries) {
  auto shape = engine::lane_shape(cache.options(), layer);
  shape.merged_entries = 0;
  const int block = cache.impl().method().lanes.summary_block;
  const double blocks = shape.summary_size == 0 ? 0 : std::floor(entries / block) + 1;
  return entries * static_cast<double>(cache::entry_bytes(shape)) +
         merged_entries * static_cast<double>(cache::MergedEntries::bytes(shape.state_columns)) +
         blocks * static_cast<double>(cache::summary_bytes(shape));
}

/// Bytes of all lanes. With any method, layers with windows hold the last tokens.
double needed(const Cache& cache, const model::Hparams& hparams) {
  const auto stats = cache.stats();
  const double entries = stats.entries_per_head_mean;
  const double merged_entries = cache.impl().method().retrieves ? 0 : stats.attended_per_head_mean - entries;
  double bytes = 0;
  for (int i = 0; i < hparams.n_layer; ++i) {
    const auto& layer = hparams.layer(i);
    bytes += layer.n_head_kv * (layer.window > 0 ? needed(cache, layer, std::min(kTokens, layer.window), 0)
                                                 : needed(cache, layer, entries, merged_entries));
  }
  return bytes;
}

std::vector<CacheOptions> all_options() {
  std::vector<CacheOptions> all;
  std::vector<std::string> specs = {"quest(snapkv)", recommended(Protocol::aware).print()};
  for (const auto& method : list_methods()) specs.push_back(method.name);
  for (const auto& spec : specs) {
    for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
      for (const char* budget : {"64", "512", "10%"}) {
        auto& o = all.emplace_back();
        o.spec = Spec::parse(spec);
        o.kv_type = KvType::parse(type);
        if (o.spec.method().needs_budget()) o.budget = Budget::parse(budget);
      }
    }
  }
  return all;
}

/// Entries and summaries together use the budget up to the bytes of one more entry, also if lanes have different
/// lengths.
TEST(MemoryOfSummaries, fits_a_budget_of_bytes) {
  const test::TempFolder folder;
  write_tiny_gguf(test::TinyModel{}, folder / "tiny.gguf");
  const auto model = Model::load(folder / "tiny.gguf");
  const auto tokens = test::random_tokens(kTokens, model->info().n_vocab);
  Session session(model, {1, Precision::automatic, 512});
  for (const char* spec : {"quest(snapkv)", "quest(knorm):page=16", "quest(ada(snapkv)):page=5"}) {
    for (const char* type : {"f32", "q8_0"}) {
      CacheOptions o;
      o.spec = Spec::parse(spec);
      o.kv_type = KvType::parse(type);
      const auto least = engine::entry_bytes(o, model->impl().weights->hparams());
      o.budget = Budget::parse(std::to_string(least * 150 / 1024) + "KiB");
      const auto prefilled = session.prefill(tokens, std::span(&o, 1));
      const auto held = static_cast<double>(prefilled.caches.front().stats().bytes_held);
      EXPECT_LE(held, o.budget->amount()) << spec << " " << type;
      EXPECT_GT(held, 0.95 * o.budget->amount()) << spec << " " << type;
    }
  }
}

class Memory : public testing::TestWithParam<const char*> {};

TEST_P(Memory, is_what_the_entries_take) {
  const test::TempFolder folder;
  write_tiny_gguf(test::tiny_of(GetParam()), folder / "tiny.gguf");
  const auto model = Model::load(folder / "tiny.gguf");
  const auto& hparams = model->impl().weights->hparams();
  const auto tokens = test::random_tokens(kTokens, model->info().n_vocab);
  Session session(model,
                  {1, Precision::automatic, 512, Pack::automatic, test::calibrated(folder / "model.cal", *model)});
  const auto prefilled = session.prefill(tokens, all_options());
  for (const auto& cache : prefilled.caches) {
    const auto held = static_cast<double>(cache.stats().bytes_held);
    const auto& o = cache.options();
    SCOPED_TRACE(o.spec.print() + ", " + o.kv_type.print() + (o.budget ? " @ " + o.budget->print() : ""));
    EXPECT_LE(held, 1.03 * needed(cache, hparams));
    EXPECT_GE(held, needed(cache, hparams));
    if (o.spec.method().evicts()) {
      EXPECT_EQ(cache.stats().entries_per_head_mean, o.budget->entries(kTokens, 1));
    }
  }
}

// One model of each kind: plain, with windows, with windows and caps, with other heads in layers with windows, with
// windows, sinks and experts, with experts.
INSTANTIATE_TEST_SUITE_P(of_models, Memory,
                         testing::Values("llama", "gemma3", "gemma2", "gemma4", "gpt-oss", "qwen3moe"),
                         [](const auto& of) { return of.param == std::string("gpt-oss") ? "gpt_oss" : of.param; });

}  // namespace
}  // namespace winnow
