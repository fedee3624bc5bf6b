// SPDX-License-Identifier: Apache-2.0
// Every method on networks of other architectures and RoPE schemes: kept entries, saving, compressing and questions.
#include <gtest/gtest.h>

#include <set>

#include "engine/kept_fixture.h"
#include "support/named_model.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

/// Each token uses all experts, each with its own weight, so rounding cannot change the choice.
NamedModel architecture(const std::string& name) {
  NamedModel out{name, tiny_of(name)};
  if (out.model.experts() > 0) out.model.n_expert_used = out.model.experts();
  std::replace(out.name.begin(), out.name.end(), '-', '_');
  return out;
}

/// A network with YaRN, whose magnitude is not 1 and multiplies the stored keys.
NamedModel yarn() {
  TinyModel model;
  model.n_layer = 3;
  model.scaling = {"yarn", 8, 64, 1.1F};
  return {"yarn", model};
}

/// A network whose RoPE rotates only some dimensions, and multiplies only these by the magnitude.
NamedModel partial_longrope() {
  TinyModel model = tiny_of("phi3");
  model.n_rot = model.head_dim / 4 * 2;
  model.longrope = true;
  model.scaling.original_context = 128;
  model.scaling.attn_factor = 1.2F;
  return {"partial_longrope", model};
}

std::vector<TinyKey> without_windows(std::vector<TinyKey> keys, int layers) {
  keys.push_back({".attention.sliding_window_pattern", std::vector<bool>(static_cast<std::size_t>(layers))});
  return keys;
}

/// A Gemma 2 without windows, so all layers are compressed.
NamedModel soft_caps() {
  NamedModel out = architecture("gemma2");
  out.name = "soft_caps";
  out.model.keys = without_windows({}, out.model.n_layer);
  return out;
}

/// A network whose learnt sinks take much of the attention.
NamedModel learnt_sinks() {
  NamedModel out = architecture("granite_swa");
  out.name = "learnt_sinks";
  out.model.keys = without_windows({{".attention.scale", 0.125F}}, out.model.n_layer);
  return out;
}

/// A Gemma 4 without windows: keys are used as values, and logits are large.
NamedModel keys_as_values() {
  NamedModel out = architecture("gemma4");
  out.name = "keys_as_values";
  out.model.n_layer = 3;
  out.model.keys = without_windows({}, out.model.n_layer);
  return out;
}

/// A Gemma 4 with KV-sharing layers and token embeddings in each layer.
NamedModel shared_keys() {
  NamedModel out = architecture("gemma4");
  out.name = "shared_keys";
  out.model.n_layer = 5;
  out.model.shared_kv = 2;
  out.model.layer_embedding = 16;
  out.model.keys = without_windows({}, out.model.n_layer);
  return out;
}

class Architectures : public KeptTest, public testing::WithParamInterface<NamedModel> {
 protected:
  Architectures() : KeptTest(GetParam().model) {}
};

TEST_P(Architectures, reading_and_decoding_are_those_of_the_network_in_double_precision) {
  expect_the_network_s_logits();
}
TEST_P(Architectures, steps_read_what_each_method_has_kept) { expect_steps_over_what_each_method_has_kept(); }
TEST_P(Architectures, a_prompt_keeps_what_its_last_rows_attend_to) {
  expect_that_a_prompt_keeps_what_its_last_rows_attend_to();
}
TEST_P(Architectures, the_bytes_that_are_foretold_suffice) { expect_that_the_bytes_foretold_suffice(); }
TEST_P(Architectures, what_is_saved_goes_on_as_if_it_had_not_been) { expect_that_what_is_saved_goes_on(); }
TEST_P(Architectures, a_turn_that_is_compressed_keeps_what_a_prompt_would) {
  expect_that_compressed_turns_keep_what_a_prompt_would();
}

/// Until something is evicted, an entry's rank is its position in the text.
TEST_P(Architectures, positions_in_the_cache_change_nothing_before_something_is_evicted) {
  const auto prompt = tokens(kPrompt);
  const auto plain = options_of("full", "", "f32");
  const auto ranked = options_of("snapkv:window=8,positions=cache", std::to_string(kPrompt + kSteps), "f32");
  Cache a = std::move(session_->prefill(prompt, std::span(&plain, 1)).caches.front());
  Cache b = std::move(session_->prefill(prompt, std::span(&ranked, 1)).caches.front());
  for (const Token token : tokens(kSteps, 2)) ASSERT_EQ(step(a, token), step(b, token));
}

/// If only the last entries are kept, all distances stay the same, so rotating all keys by one angle changes no logit.
TEST_P(Architectures, keys_that_all_move_alike_keep_their_logits) {
  const auto prompt = tokens(kPrompt);
  const auto stay = options_of("streaming-llm:sinks=0", "40", "f32");
  const auto move = options_of("streaming-llm:sinks=0,positions=cache", "40", "f32");
  Cache a = std::move(session_->prefill(prompt, std::span(&stay, 1)).caches.front());
  Cache b = std::move(session_->prefill(prompt, std::span(&move, 1)).caches.front());
  for (const Token token : tokens(kSteps, 2)) ASSERT_LT(distance(step(b, token), step(a, token)), tolerance());
}

INSTANTIATE_TEST_SUITE_P(all, Architectures,
                         testing::Values(architecture("smollm3"), architecture("glm4"), architecture("olmo2"),
                                         architecture("granite"), architecture("command-r"), architecture("starcoder2"),
                                         architecture("qwen2moe"), architecture("granitemoe"), architecture("mistral3"),
                                         soft_caps(), learnt_sinks(), keys_as_values(), shared_keys(), yarn(),
                                         partial_longrope()),
                         [](const auto& test) { return test.param.name; });

/// A Gemma 4, whose layers with windows have other head sizes than those without.
class HeadsByWindows : public KeptTest {
 protected:
  HeadsByWindows() : KeptTest(tiny_of("gemma4")) {}
};

TEST_F(HeadsByWindows, reading_and_decoding_are_those_of_the_network_in_double_precision) {
  expect_the_network_s_logits();
}
TEST_F(HeadsByWindows, steps_read_what_each_method_has_kept) { expect_steps_over_what_each_method_has_kept(); }
TEST_F(HeadsByWindows, the_bytes_that_are_foretold_suffice) { expect_that_the_bytes_foretold_suffice(); }
TEST_F(HeadsByWindows, what_is_saved_goes_on_as_if_it_had_not_been) { expect_that_what_is_saved_goes_on(); }
TEST_F(HeadsByWindows, a_turn_that_is_compressed_keeps_what_a_prompt_would) {
  expect_that_compressed_turns_keep_what_a_prompt_would();
}

/// The same with KV-sharing layers, with windows and without.
class SharedKeys : public KeptTest {
 protected:
  SharedKeys() : KeptTest(model()) {}

  static TinyModel model() {
    TinyModel out = tiny_of("gemma4");
    out.shared_kv = 3;
    out.layer_embedding = 16;
    return out;
  }
};

TEST_F(SharedKeys, reading_and_decoding_are_those_of_the_network_in_double_precision) { expect_the_network_s_logits(); }
TEST_F(SharedKeys, steps_read_what_each_method_has_kept) { expect_steps_over_what_each_method_has_kept(); }
TEST_F(SharedKeys, the_bytes_that_are_foretold_suffice) { expect_that_the_bytes_foretold_suffice(); }
TEST_F(SharedKeys, recorded_queries_are_those_of_every_layer_that_reads_the_keys) {
  expect_that_recorded_rows_are_the_network_s();
}
TEST_F(SharedKeys, what_is_saved_goes_on_as_if_it_had_not_been) { expect_that_what_is_saved_goes_on(); }
TEST_F(SharedKeys, a_turn_that_is_compressed_keeps_what_a_prompt_would) {
  expect_that_compressed_turns_keep_what_a_prompt_would();
}

/// Three layers store entries; one of them has no window.
TEST_F(SharedKeys, are_held_once) {
  const auto cache = std::move(prefill(options_of("full", "", "f32")).caches.front());
  EXPECT_EQ(cache.kept().size(), z(3));
  EXPECT_EQ(cache.stats().entries_min, kPrompt);
}

TEST_F(SharedKeys, questions_keep_what_their_prompts_keep) {
  const auto text = tokens(70);
  const std::vector<std::vector<Token>> questions = {tokens(20, 5), tokens(33, 6), {}};
  for (const char* spec : {"full", "snapkv:window=8", "kvzip", "kvzip:after=chunk,chunk=32", "knorm"}) {
    const auto options = with_budget(spec, 64);
    const auto together = session_->prefill(text, questions, std::span(&options, 1));
    for (std::size_t i = 0; i < questions.size(); ++i) {
      auto prompt = text;
      prompt.insert(prompt.end(), questions[i].begin(), questions[i].end());
      const auto alone = prefill(options, prompt);
      EXPECT_LT(distance(together[i].logits, alone.logits), tolerance()) << spec;
      EXPECT_EQ(together[i].caches.front().kept(), alone.caches.front().kept()) << spec;
    }
  }
}

/// The queries of one layer would choose keys for others.
TEST_F(SharedKeys, methods_that_choose_what_is_read_are_refused) {
  std::set<std::string> refused;
  for (const auto& spec : all_specs()) {
    try {
      prefill(with_budget(spec));
    } catch (const UsageError& error) {
      EXPECT_EQ(error.what(), Spec::parse(spec).print() +
                                  " cannot run yet with a model in which 3 layers read other layers' keys: it chooses "
                                  "keys for one layer's queries");
      refused.insert(spec);
    }
  }
  EXPECT_EQ(refused, (std::set<std::string>{"infllm", "quest"}));
}

/// A network that normalises queries and keys after rotating them.
class NormedAfterRotation : public KeptTest {
 protected:
  NormedAfterRotation() : KeptTest(tiny_of("hunyuan-dense")) {}
};

TEST_F(NormedAfterRotation, reading_and_decoding_are_those_of_the_network_in_double_precision) {
  expect_the_network_s_logits();
}

/// The norms' weights do not commute with rotations, so a key cannot be rotated to another position.
TEST_F(NormedAfterRotation, methods_that_turn_keys_or_queries_are_refused_and_the_others_run) {
  std::set<std::string> refused;
  for (const auto& spec : all_specs()) {
    try {
      if (only_evicts(Spec::parse(spec).method())) {
        expect_steps_over_what_is_kept(spec);
      } else {
        prefill(with_budget(spec));
      }
    } catch (const UsageError& error) {
      EXPECT_EQ(std::string(error.what())
                    .find(Spec::parse(spec).print() + " cannot run with the architecture "
                                                      "hunyuan-dense: it rotates keys or queries"),
                0U)
          << error.what();
      refused.insert(spec);
    }
  }
  EXPECT_EQ(refused, (std::set<std::string>{"snapkv:positions=cache", "refit(ems)", "compactor", "ems",
                                            "expected-attention", "finch", "infllm"}));
}

}  // namespace
}  // namespace winnow::test
