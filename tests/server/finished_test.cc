// SPDX-License-Identifier: Apache-2.0
#include "server/kept/finished.h"

#include <gtest/gtest.h>

namespace winnow::server {
namespace {

FinishedRequest request(const std::string& id, std::size_t tokens) {
  return {id,
          "owner",
          "snapkv",
          "4",
          std::vector<Token>(tokens),
          std::make_shared<const KeptPositions>(KeptPositions::Positions{{{0}}}, 1)};
}

TEST(KeptPositions, NeighboursBecomeRuns) {
  const KeptPositions kept({{{0, 1, 2, 5}, {}}, {{7}, {3, 5, 6}}}, 8);
  ASSERT_EQ(kept.layers().size(), 2);
  const auto& runs = kept.layers()[0][0];
  ASSERT_EQ(runs.size(), 2);
  EXPECT_EQ(runs[0].first, 0);
  EXPECT_EQ(runs[0].last, 2);
  EXPECT_EQ(runs[1].first, 5);
  EXPECT_EQ(runs[1].last, 5);
  EXPECT_TRUE(kept.layers()[0][1].empty());
  EXPECT_EQ(kept.layers()[1][1].size(), 2);
  EXPECT_EQ(kept.entries_per_head(), 2.0);
}

TEST(FinishedRequests, OnlyTheOwnerFindsOne) {
  FinishedRequests all;
  all.put(request("a", 1));
  EXPECT_NE(all.find("a", "owner"), nullptr);
  EXPECT_EQ(all.find("a", ""), nullptr);
  EXPECT_EQ(all.find("b", "owner"), nullptr);
}

TEST(FinishedRequests, TheOldestAreForgottenWhenThereAreTooMany) {
  FinishedRequests all({.requests = 2, .bytes = 1 << 20});
  for (const char* const id : {"a", "b", "c"}) all.put(request(id, 1));
  EXPECT_EQ(all.find("a", "owner"), nullptr);
  EXPECT_NE(all.find("b", "owner"), nullptr);
  EXPECT_NE(all.find("c", "owner"), nullptr);
}

TEST(FinishedRequests, TheOldestAreForgottenWhenTheyTakeTooMuch) {
  constexpr std::size_t kTokens = 1000;
  FinishedRequests all({.requests = 100, .bytes = 3 * kTokens * sizeof(Token)});
  for (const char* const id : {"a", "b", "c"}) all.put(request(id, kTokens));
  EXPECT_EQ(all.find("a", "owner"), nullptr);
  EXPECT_NE(all.find("b", "owner"), nullptr);
  EXPECT_NE(all.find("c", "owner"), nullptr);
}

TEST(FinishedRequests, OneThatNeverFitsPushesNothingOut) {
  FinishedRequests all({.requests = 100, .bytes = 4000});
  all.put(request("small", 1));
  all.put(request("large", 1000));
  EXPECT_NE(all.find("small", "owner"), nullptr);
  EXPECT_EQ(all.find("large", "owner"), nullptr);
}

}  // namespace
}  // namespace winnow::server
