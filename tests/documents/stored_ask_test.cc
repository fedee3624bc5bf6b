// SPDX-License-Identifier: Apache-2.0
// Questions over stored documents give the same answers as over documents in memory.
#include <thread>

#include "documents/calibrate.h"
#include "fixture.h"
#include "support/refusal.h"
#include "winnow/documents.h"
#include "winnow/error.h"

namespace winnow::test {
namespace {

class StoredAskTest : public MultiTest {
 protected:
  std::shared_ptr<const documents::Document> stored(const std::string& name, std::vector<Token> text,
                                                    const std::string& kv = "full", const std::string& budget = "") {
    store_.add(*session_, {name, {}, {"", ControlTokens::as_text, std::move(text)}}, options_of(kv, budget, "f32"));
    return store_.open(name, *session_);
  }

  DocumentStore store_{folder_ / "store"};
};

TEST_F(StoredAskTest, every_method_comes_to_the_same) {
  Documents from_memory;
  Documents from_store;
  for (const int n : {600, 300, 64, 10}) {
    const auto text = tokens(n, static_cast<unsigned>(n));
    from_memory.push_back(document(text));
    from_store.push_back(stored("document " + std::to_string(n), text));
    EXPECT_EQ(from_store.back()->head().layers, from_memory.back()->head().layers);
  }
  for (const auto* method : {"samkv", "samkv:deciding=4,sigma=1", "recompute", "reuse", "epic", "cacheblend"})
    EXPECT_EQ(ask(from_store, method).logits, ask(from_memory, method).logits) << method;
  EXPECT_EQ(ask(from_store, "multi-infllm", "200").logits, ask(from_memory, "multi-infllm", "200").logits);
}

TEST_F(StoredAskTest, a_compressed_one_too) {
  const auto text = tokens(400, 1);
  EXPECT_EQ(ask({stored("small", text, "ada(snapkv)", "90")}, "reuse").logits,
            ask({document(text, "ada(snapkv)", "90")}, "reuse").logits);
}

TEST_F(StoredAskTest, what_was_removed_meanwhile_is_an_error) {
  const Documents documents{stored("stays", tokens(200, 1)), stored("goes", tokens(300, 2))};
  const std::vector<std::string> names{"goes"};
  DocumentStore(folder_ / "store").remove(names);
  for (const auto* method : {"samkv", "reuse", "epic"}) {
    try {
      ask(documents, method);
      ADD_FAILURE() << method << " read a document that is gone";
    } catch (const InputError& error) {
      EXPECT_NE(std::string(error.what()).find("goes"), std::string::npos) << error.what();
    }
  }
}

TEST_F(StoredAskTest, a_store_tells_which_layers_decide) {
  Documents from_memory;
  std::vector<std::string> names;
  for (const int n : {1000, 13 * 64, 13 * 64 + 1}) {
    names.push_back(std::to_string(n));
    const auto text = tokens(n, static_cast<unsigned>(n));
    from_memory.push_back(document(text));
    stored(names.back(), text);
  }
  const auto found = store_.calibrate(names);
  EXPECT_EQ(found.long_enough, 2) << "14 blocks have 11 middle ones";
  EXPECT_EQ(found.scores, documents::layer_scores(from_memory));
  EXPECT_EQ(found.deciding, documents::deciding_layers(found.scores));
  ASSERT_EQ(found.exponents.size(), names.size());
  for (std::size_t d = 0; d < names.size(); ++d) {
    for (std::size_t layer = 0; layer < found.exponents[d].size(); ++layer) {
      const auto& representatives = from_memory[d]->head().layers[layer].representatives;
      ASSERT_EQ(found.exponents[d][layer].size(), representatives.size());
      for (std::size_t b = 0; b < representatives.size(); ++b)
        EXPECT_EQ(found.exponents[d][layer][b], representatives[b].exponent);
    }
  }
  EXPECT_EQ(found.exponents[0].front().size(), 13U) << "of 16 blocks of 64 tokens";

  stored("small", tokens(900, 4), "snapkv", "90");
  names.push_back("small");
  EXPECT_EQ(refusal([&] { store_.calibrate(names); }),
            "the document small cannot be used to find deciding layers: it was compressed by snapkv when it was added");
  auto other = tiny();
  other.seed += 1;
  write_tiny_gguf(other, folder_ / "other.gguf");
  Session session(Model::load(folder_ / "other.gguf"), SessionOptions{1, Precision::f32, 100});
  store_.add(session, {"another's", {}, {"", ControlTokens::as_text, tokens(900, 5)}}, {});
  names.back() = "another's";
  EXPECT_EQ(refusal([&] { store_.calibrate(names); }),
            "the documents 1000 and another's were read by different models");
}

TEST_F(StoredAskTest, eight_askers_at_once_each_get_their_own_answers) {
  constexpr int kDocuments = 200;
  constexpr int kAskers = 8;
  constexpr int kQuestions = 6;
  const auto name = [](int i) { return "document " + std::to_string(i); };
  for (int i = 0; i < kDocuments; ++i) stored(name(i), tokens(60 + i, static_cast<unsigned>(i)));
  /// Each question of each asker is about different documents.
  const auto asked = [&](Session& session, int asker, int question) {
    Documents some;
    for (int i = 0; i < 3; ++i)
      some.push_back(store_.open(name((asker * 37 + question * 11 + i * 61) % kDocuments), session));
    const AskOptions options{AskSpec::parse("samkv:deciding=4"), {}, KvType::parse("f32")};
    return winnow::ask(session, some, question_, options).logits;
  };
  std::vector<std::vector<std::vector<float>>> got(kAskers, std::vector<std::vector<float>>(kQuestions));
  std::vector<std::thread> askers;
  for (int a = 0; a < kAskers; ++a) {
    askers.emplace_back([&, a] {
      Session own(model_, SessionOptions{1, Precision::f32, 100});
      for (int q = 0; q < kQuestions; ++q) got[a][q] = asked(own, a, q);
    });
  }
  for (auto& asker : askers) asker.join();
  for (int a = 0; a < kAskers; ++a) {
    for (int q = 0; q < kQuestions; ++q) EXPECT_EQ(got[a][q], asked(*session_, a, q)) << a << ", " << q;
  }
}

}  // namespace
}  // namespace winnow::test
