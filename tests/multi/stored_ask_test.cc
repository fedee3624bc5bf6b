// Documents that come from a store are asked about like those in memory.
#include "fixture.h"
#include "winnow/documents.h"

namespace winnow::test {
namespace {

class StoredAskTest : public MultiTest {
 protected:
  std::shared_ptr<const multi::Document> stored(const std::string& name, std::vector<Token> text, const std::string& kv = "full",
                                                const std::string& budget = "") {
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
  EXPECT_EQ(ask({stored("small", text, "ada(snapkv)", "90")}, "reuse").logits, ask({document(text, "ada(snapkv)", "90")}, "reuse").logits);
}

}  // namespace
}  // namespace winnow::test
