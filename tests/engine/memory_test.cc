// SPDX-License-Identifier: Apache-2.0
// What a cache holds is what its entries take: for every method, encoding and budget.
#include <gtest/gtest.h>

#include "engine/layers.h"
#include "engine/model_impl.h"
#include "engine/sequence.h"
#include "support/random_tokens.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/methods.h"
#include "winnow/session.h"

namespace winnow {
namespace {

constexpr int kTokens = 1300;

/// Bytes that the entries, merged entries and summaries of a cache take by themselves.
double needed(const Cache& cache, const model::Hparams& hparams) {
  const auto& method = cache.impl().method();
  auto shape = engine::lane_shape(cache.options(), hparams.layer(0));
  shape.merged_entries = 0;
  const auto stats = cache.stats();
  const double merged_entries = method.retrieves ? 0 : stats.attended_per_head_mean - stats.entries_per_head_mean;
  const double blocks =
      shape.summary_size == 0 ? 0 : std::ceil(static_cast<double>(kTokens) / method.lanes.summary_block / 64 + 1) * 64;
  const double of_head = stats.entries_per_head_mean * static_cast<double>(cache::entry_bytes(shape)) +
                         merged_entries * static_cast<double>(cache::MergedEntries::bytes(shape.state_columns)) +
                         blocks * static_cast<double>(cache::summary_bytes(shape));
  return of_head * hparams.n_layer * hparams.layer(0).n_head_kv;
}

TEST(Memory, is_what_the_entries_take) {
  const test::TempFolder folder;
  test::TinyModel tiny;
  tiny.n_layer = 2;
  tiny.n_head = 6;
  tiny.n_head_kv = 2;
  write_tiny_gguf(tiny, folder / "tiny.gguf");
  const auto model = Model::load(folder / "tiny.gguf");
  const auto& hparams = model->impl().weights->hparams();
  std::vector<CacheOptions> all;
  for (const auto& method : list_methods()) {
    for (const char* type : {"f32", "f16", "q8_0", "q4_0"}) {
      for (const char* budget : {"64", "512", "10%"}) {
        auto& o = all.emplace_back();
        o.spec = Spec::parse(method.name);
        o.kv_type = KvType::parse(type);
        if (o.spec.method().needs_budget()) o.budget = Budget::parse(budget);
      }
    }
  }
  const auto tokens = test::random_tokens(kTokens, model->info().n_vocab);
  Session session(model, {1, Precision::automatic, 512});
  const auto prefilled = session.prefill(tokens, all);
  for (const auto& cache : prefilled.caches) {
    const auto held = static_cast<double>(cache.stats().bytes_held);
    const auto& o = cache.options();
    EXPECT_LE(held, 1.03 * needed(cache, hparams))
        << o.spec.print() << ", " << o.kv_type.print() << (o.budget ? " @ " + o.budget->print() : "");
    EXPECT_GE(held, needed(cache, hparams) * (o.spec.method().lanes.summary_rows > 0 ? 0.5 : 1)) << o.spec.print();
    if (o.spec.method().evicts()) {
      EXPECT_EQ(cache.stats().entries_per_head_mean, o.budget->entries(kTokens, 1)) << o.spec.print();
    }
  }
}

}  // namespace
}  // namespace winnow
