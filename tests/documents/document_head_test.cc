// SPDX-License-Identifier: Apache-2.0
// A document's head is read back unchanged, and invalid bytes are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "documents/records.h"
#include "documents/some_document.h"
#include "winnow/error.h"

namespace winnow::documents {
namespace {

store::Bytes bytes_of(const DocumentHead& head) {
  MemorySink sink;
  head.write(sink);
  return sink.bytes();
}

DocumentHead read(std::span<const std::byte> bytes) {
  const MemorySource source(bytes, "memory");
  ByteCursor cursor(source, 0, bytes.size());
  return DocumentHead::read(cursor);
}

std::string refusal(const DocumentHead& head) {
  try {
    read(bytes_of(head));
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

class DocumentHeadTest : public testing::Test {
 protected:
  test::TinySession tiny_;
};

TEST_F(DocumentHeadTest, comes_back_as_it_was) {
  for (const int tokens : {1, 63, 64, 65, 191, 192, 193, 500}) {
    const auto document = tiny_.read(tokens);
    const auto back = read(bytes_of(document.head));
    EXPECT_EQ(back.layers, document.head.layers) << tokens;
    EXPECT_EQ(back.saved.model, document.head.saved.model);
    EXPECT_EQ(back.saved.transcript.tokens, document.head.saved.transcript.tokens);
    EXPECT_EQ(bytes_of(back), bytes_of(document.head));
  }
}

TEST_F(DocumentHeadTest, what_cannot_be_is_named) {
  const auto document = tiny_.read(500);
  const auto with = [&](const auto& change) {
    DocumentHead head = document.head;
    change(head.layers[1]);
    return refusal(head);
  };
  EXPECT_NE(with([](LayerFacts& f) {
              f.representatives[1].token = 63;
            }).find("token 63 cannot represent block 2, which has tokens 128 to 191"),
            std::string::npos);
  EXPECT_NE(with([](LayerFacts& f) { f.representatives[0].exponent = -1; }).find("exponent -1"), std::string::npos);
  EXPECT_NE(with([](LayerFacts& f) { f.representatives[0].attention = NAN; }).find("attention nan"), std::string::npos);
  EXPECT_NE(with([](LayerFacts& f) { f.outliers = {70, 70}; }).find("outlier 70 follows 70"), std::string::npos);
  EXPECT_NE(with([](LayerFacts& f) {
              f.outliers = {500};
            }).find("outlier 500 follows -1, expected ascending tokens below 500"),
            std::string::npos);
  EXPECT_NE(with([](LayerFacts& f) { f.received[7] = std::numeric_limits<float>::infinity(); }).find("inf"),
            std::string::npos);

  DocumentHead half = document.head;
  half.layers.pop_back();
  EXPECT_NE(refusal(half).find("1 of 2 layers have facts"), std::string::npos);
  DocumentHead more = document.head;
  more.saved.transcript.tokens.push_back(5);
  EXPECT_NE(refusal(more).find("it has 501 tokens, but 500 were read"), std::string::npos);
}

TEST_F(DocumentHeadTest, every_cut_is_refused) {
  const auto bytes = bytes_of(tiny_.read(70).head);
  for (std::size_t size = 0; size < bytes.size(); ++size)
    EXPECT_THROW(read(std::span(bytes).first(size)), InputError) << size;
}

TEST_F(DocumentHeadTest, no_byte_that_is_flipped_is_followed_blindly) {
  StoredHead stored{tiny_.read(70).head, {}};
  for (int layer = 0; layer < 2; ++layer) stored.sums.push_back(SummingSink(stored.head.saved, layer, nullptr).sums());
  for (auto& sums : stored.sums) sums.size = PlainLayer(stored.head.saved, 0).size();
  const auto bytes = stored.bytes();
  EXPECT_EQ(StoredHead::read(bytes, "it").sums, stored.sums);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    auto flipped = bytes;
    flipped[at] ^= std::byte{0x80};
    EXPECT_THROW(StoredHead::read(flipped, "it"), InputError) << at;  // the checksum
    const std::uint64_t sum = hash_of(std::span(flipped).first(flipped.size() - sizeof(std::uint64_t)));
    std::memcpy(flipped.data() + flipped.size() - sizeof(sum), &sum, sizeof(sum));
    try {
      StoredHead::read(flipped, "it");  // the checksum is correct: the fields are checked, too
    } catch (const InputError&) {
    }
  }
}

}  // namespace
}  // namespace winnow::documents
