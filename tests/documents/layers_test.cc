// SPDX-License-Identifier: Apache-2.0
// Documents of a network whose layers differ in heads, KV heads, head size and RoPE.
#include <algorithm>

#include "fixture.h"
#include "winnow/documents.h"

namespace winnow::test {
namespace {

class LayersOfDocumentsTest : public MultiTest {
 protected:
  LayersOfDocumentsTest() : MultiTest(tiny_of_different_layers()) {}
};

TEST_F(LayersOfDocumentsTest, recomputing_all_tokens_is_reading_them_together) {
  const auto some = documents({150, 90, 192});
  auto prompt = joined(some);
  prompt.insert(prompt.end(), question_.begin(), question_.end());
  Network network(path_, 1, 1, static_cast<int>(prompt.size()));
  const auto all = network.prefill(prompt, 64);
  const auto want = std::span(all).last(z(model_->info().n_vocab));
  for (const auto* method : {"recompute:bos=each", "cacheblend:share=1", "epic:initial=1000", "samkv:update=overwrite"})
    EXPECT_LT(distance(ask(some, method).logits, want), tolerance()) << method;
  EXPECT_GT(distance(ask(some, "reuse").logits, want), 10 * tolerance()) << "these documents do not need each other";
}

/// Rotates each document's stored keys to its joint position, with each layer's own frequencies. The result equals a
/// network whose tokens do not see earlier documents.
TEST_F(LayersOfDocumentsTest, stored_entries_are_rotated_to_their_joint_places) {
  const auto some = documents({150, 90, 192});
  const std::vector<int> begins = {0, 150, 240, 432};
  auto prompt = joined(some);
  prompt.insert(prompt.end(), question_.begin(), question_.end());
  Network network(path_, 1, 1, static_cast<int>(prompt.size()));
  network.attention().set_sees([&](int, int, int query, int key) {
    const auto begin = *std::prev(std::upper_bound(begins.begin(), begins.end(), query));
    return query >= begins.back() || key >= begin;
  });
  const auto all = network.prefill(prompt, 64);
  const auto want = std::span(all).last(z(model_->info().n_vocab));
  // Two rotations by f32 angles of up to 440 radians have an error of 440 u each.
  EXPECT_LT(distance(ask(some, "reuse").logits, want), tolerance() + kLargestGain * 2 * 440 * 0x1p-24);
  EXPECT_GT(distance(ask(some, "reuse:positions=raw").logits, want), 10 * tolerance());
}

TEST_F(LayersOfDocumentsTest, what_a_store_holds_is_what_was_read) {
  DocumentStore store(folder_ / "store");
  Documents from_memory;
  Documents from_store;
  for (const int n : {600, 300, 64}) {
    const auto text = tokens(n, static_cast<unsigned>(n));
    const auto name = std::to_string(n);
    store.add(*session_, {name, {}, {"", ControlTokens::as_text, text}}, options_of("full", "", "f32"));
    from_memory.push_back(document(text));
    from_store.push_back(store.open(name, *session_));
    EXPECT_EQ(from_store.back()->head().layers, from_memory.back()->head().layers);
  }
  for (const auto* method : {"samkv", "samkv:deciding=4,sigma=1", "recompute", "reuse", "epic", "cacheblend"})
    EXPECT_EQ(ask(from_store, method).logits, ask(from_memory, method).logits) << method;
  EXPECT_EQ(ask(from_store, "multi-infllm", "200").logits, ask(from_memory, "multi-infllm", "200").logits);
}

TEST_F(LayersOfDocumentsTest, a_compressed_document_goes_on_as_its_cache_would) {
  const auto text = tokens(400, 5);
  const auto options = options_of("ada(snapkv)", "80", "f32");
  auto prefilled = session_->prefill(text, std::span(&options, 1));
  EXPECT_EQ(ask({document(text, "ada(snapkv)", "80")}, "reuse").logits,
            session_->extend(prefilled.caches.front(), question_));
}

TEST_F(LayersOfDocumentsTest, an_exported_document_comes_back) {
  DocumentStore store(folder_ / "store");
  const auto text = tokens(300, 1);
  store.add(*session_, {"one", {}, {"", ControlTokens::as_text, text}}, options_of("full", "", "f32"));
  store.export_to("one", folder_ / "one.doc");
  DocumentStore other(folder_ / "other");
  other.import_from(folder_ / "one.doc", "two");
  EXPECT_EQ(ask({other.open("two", *session_)}, "reuse").logits, ask({store.open("one", *session_)}, "reuse").logits);
}

}  // namespace
}  // namespace winnow::test
