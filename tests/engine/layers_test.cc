// SPDX-License-Identifier: Apache-2.0
// A network whose layers differ in heads, KV heads, head size and RoPE.
#include "engine/layers.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engine/kept_fixture.h"
#include "engine/saved.h"
#include "engine/sequence.h"

namespace winnow::test {
namespace {

class LayersTest : public KeptTest {
 protected:
  LayersTest() : KeptTest(tiny_of_different_layers()) {}
};

TEST_F(LayersTest, reading_and_decoding_are_those_of_the_network_in_double_precision) { expect_the_network_s_logits(); }
TEST_F(LayersTest, steps_read_what_each_method_has_kept) { expect_steps_over_what_each_method_has_kept(); }
TEST_F(LayersTest, recorded_queries_are_the_network_s) { expect_that_recorded_rows_are_the_network_s(); }
TEST_F(LayersTest, what_is_saved_goes_on_as_if_it_had_not_been) { expect_that_what_is_saved_goes_on(); }
TEST_F(LayersTest, a_turn_that_is_compressed_keeps_what_a_prompt_would) {
  expect_that_compressed_turns_keep_what_a_prompt_would();
}

TEST_F(LayersTest, no_two_layers_are_alike) {
  ASSERT_EQ(hparams().kinds.size(), 4U);
  EXPECT_EQ(hparams().layer(1).n_head, 4);
  EXPECT_EQ(hparams().layer(1).n_head_kv, 4);
  EXPECT_EQ(hparams().layer(2).head_dim, 96);
  EXPECT_EQ(hparams().layer(2).rope.rotated_dims(), 48);
  EXPECT_NEAR(hparams().layer(2).rope.frequency.back(), std::pow(500.0, -46.0 / 48), 1e-6);
  EXPECT_EQ(hparams().layer(3).rope_base, 1e6F);
}

TEST_F(LayersTest, a_prompt_keeps_what_its_last_rows_attend_to_in_every_head) {
  expect_that_a_prompt_keeps_what_its_last_rows_attend_to();
}

/// Files record the sizes of all layers, so files of another model with an equal first layer are recognised.
TEST_F(LayersTest, a_file_says_the_heads_of_each_layer) {
  const auto identity = engine::identity_of(hparams(), 1);
  ASSERT_EQ(identity.heads.size(), 4U);
  EXPECT_EQ(identity.of_layer(2).head_dim, 96);
  TinyModel equal;
  write_tiny_gguf(equal, folder_ / "equal.gguf");
  const auto other = Model::load(folder_ / "equal.gguf");
  EXPECT_EQ(engine::identity_of(other->impl().weights->hparams(), 1).heads.size(), 1U);
}

TEST_F(LayersTest, bytes_are_those_of_each_layer_s_entries) {
  std::size_t entry = 0;  // in each lane of each layer: f32 keys and values, and a position
  for (const auto& layer : model_->info().layers) entry += z(layer.n_head_kv) * (z(layer.head_dim) * 8 + 4);
  const auto stats = prefill(options_of("knorm", "64KiB", "f32")).caches.front().stats();
  EXPECT_LE(stats.bytes_held, 65536U);
  EXPECT_GT(stats.bytes_held + entry, 65536U);
  EXPECT_EQ(stats.entries_min, stats.entries_max);
  EXPECT_EQ(stats.bytes_full, z(kPrompt) * model_->info().kv_bytes_per_token);
}

TEST_F(LayersTest, the_bytes_that_are_foretold_suffice) { expect_that_the_bytes_foretold_suffice(); }

}  // namespace
}  // namespace winnow::test
