// SPDX-License-Identifier: Apache-2.0
// Documents whose keys and values cannot be read during a question: an error or, if the caller allows it, another
// reading.
#include <optional>

#include "documents/records.h"
#include "fixture.h"
#include "store/any_store.h"
#include "support/refusal.h"
#include "winnow/documents.h"

namespace winnow::test {
namespace {

class StoreTest : public MultiTest {
 protected:
  StoreTest() { session_ = std::make_unique<Session>(model_, SessionOptions{1, Precision::f32, 100}); }

  void use_redis() {
    if (!RedisServer::is_installed()) GTEST_SKIP() << "redis-server is not installed: the shared store is not tested";
    redis_.emplace();
    where_ = redis_->url();
  }

  /// Reads texts of these lengths to memory and to the store.
  void make(const std::vector<int>& lengths, const std::string& kv = "full", const std::string& budget = "") {
    DocumentStore store(where_);
    for (const int n : lengths) {
      const auto text = tokens(n, static_cast<unsigned>(n));
      const auto name = std::to_string(n);
      from_memory_.push_back(document(text, kv, budget));
      store.add(*session_, {name, {}, {"", ControlTokens::as_text, text}}, options_of(kv, budget, "f32"));
      from_store_.push_back(store.open(name, *session_));
    }
  }

  void remove(const std::string& name) { DocumentStore(where_).remove(std::span(&name, 1)); }

  /// Flips a bit in the last value of a layer.
  void damage(const std::string& name, int layer) {
    const auto bytes = store::open({where_}, store::Missing::is_an_error);
    const auto id = documents::NameRecord::read(name, *bytes->record(documents::kNamePrefix + name), "it").id;
    const auto key =
        documents::ContentRecord::read(*bytes->record(documents::kContentPrefix + id), "it").layer_key(layer);
    const auto lease = bytes->value(key, std::span(&store::kWhole, 1));
    store::Bytes value(lease->parts.front().begin(), lease->parts.front().end());
    value.back() ^= std::byte{1};
    bytes->change([&](store::Change& change) { change.erase_value(key); });
    bytes->change(
        [&](store::Change& change) { change.add_value(key, value.size(), [&](ByteSink& to) { to.write(value); }); });
  }

  Asked ask_tolerantly(const Documents& documents, const std::string& method) {
    const AskOptions options{AskSpec::parse(method), {}, KvType::parse("f32"), UnreadableDocument::is_recomputed};
    return winnow::ask(*session_, documents, question_, options);
  }

  static std::vector<int> recomputed(const Asked& asked) {
    std::vector<int> out;
    for (const auto& r : asked.recomputed_documents) out.push_back(r.index);
    return out;
  }

  std::optional<RedisServer> redis_;
  std::string where_ = folder_ / "store";
  Documents from_memory_;
  Documents from_store_;
};

class UnreadableTest : public StoreTest, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    if (std::string(GetParam()) == "redis") use_redis();
  }
};
INSTANTIATE_TEST_SUITE_P(stores, UnreadableTest, testing::Values("folder", "redis"), name_of_store);

TEST_P(UnreadableTest, a_damaged_block_is_found_and_its_document_recomputed) {
  make({300, 700, 200});
  damage("700", 2);
  for (const auto* method : {"samkv", "reuse", "epic", "cacheblend"}) {
    const auto says = refusal([&] { ask(from_store_, method); });
    EXPECT_NE(says.find("layer 2 of the document 700"), std::string::npos) << says;
    EXPECT_NE(says.find("is damaged: the checksum of block 10"), std::string::npos) << says;

    const auto asked = ask_tolerantly(from_store_, method);
    EXPECT_EQ(asked.logits, ask(from_memory_, method).logits) << method;
    EXPECT_EQ(recomputed(asked), std::vector{1});
    EXPECT_EQ(asked.recomputed_documents.front().why, says);
    EXPECT_EQ(asked.phases.front().name, "recompute");

    auto next = from_store_;
    next[1] = asked.recomputed_documents.front().document;
    const auto again = ask_tolerantly(next, method);
    EXPECT_EQ(again.logits, asked.logits);
    EXPECT_TRUE(again.recomputed_documents.empty());
  }
}

TEST_P(UnreadableTest, what_was_removed_is_recomputed_wherever_it_stands) {
  make({300, 200});
  const Documents twice{from_store_[0], from_store_[1], from_store_[0]};
  remove("300");
  EXPECT_NE(refusal([&] { ask(twice, "samkv"); }).find("the document 300"), std::string::npos);
  const auto asked = ask_tolerantly(twice, "samkv");
  EXPECT_EQ(recomputed(asked), (std::vector{0, 2}));
  EXPECT_EQ(asked.logits, ask({from_memory_[0], from_memory_[1], from_memory_[0]}, "samkv").logits);
}

TEST_P(UnreadableTest, a_compressed_document_is_compressed_anew) {
  make({400, 300}, "ada(snapkv)", "25%");
  remove("400");
  remove("300");
  EXPECT_FALSE(refusal([&] { ask(from_store_, "reuse"); }).empty());
  const auto asked = ask_tolerantly(from_store_, "reuse");
  EXPECT_EQ(recomputed(asked), (std::vector{0, 1}));
  EXPECT_EQ(asked.logits, ask(from_memory_, "reuse").logits);
  EXPECT_LT(asked.sequence_ratio, 0.3);
}

TEST_P(UnreadableTest, what_can_be_read_is_not_recomputed) {
  make({300, 200});
  EXPECT_TRUE(ask_tolerantly(from_store_, "samkv").recomputed_documents.empty());
  remove("300");
  EXPECT_TRUE(ask_tolerantly(from_store_, "recompute").recomputed_documents.empty()) << "it reads no stored values";
}

TEST_P(UnreadableTest, recomputing_can_be_interrupted) {
  make({300});
  remove("300");
  session_->on_stop([] { return true; });
  EXPECT_THROW(ask_tolerantly(from_store_, "reuse"), Interrupted);
}

/// A server that is killed after one layer has been assembled.
class ServerTest : public StoreTest {
 protected:
  void SetUp() override {
    use_redis();
    if (IsSkipped()) return;
    make({300, 700, 200});
    session_->on_progress([&](double) { redis_->stop(); });
  }
};

TEST_F(ServerTest, that_goes_away_is_an_error) {
  const std::string expected = "the documents in " + where_ + " cannot be reached";
  const auto says = refusal([&] { ask(from_store_, "samkv"); });
  EXPECT_NE(says.find(expected), std::string::npos) << says;
  EXPECT_NE(refusal([&] { ask(from_store_, "samkv"); }).find(expected), std::string::npos) << "and from the beginning";
}

TEST_F(ServerTest, that_goes_away_leaves_documents_to_be_recomputed) {
  const auto asked = ask_tolerantly(from_store_, "samkv");
  EXPECT_EQ(recomputed(asked), (std::vector{0, 1, 2}));
  EXPECT_EQ(asked.logits, ask(from_memory_, "samkv").logits);
}

}  // namespace
}  // namespace winnow::test
