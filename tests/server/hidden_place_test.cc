// SPDX-License-Identifier: Apache-2.0
#include "server/hidden_place.h"

#include <gtest/gtest.h>

namespace winnow::server {
namespace {

TEST(HiddenPlace, IsInNoSentence) {
  const HiddenPlace place("/srv/shelf");
  EXPECT_EQ(place.without("cannot read the documents in /srv/shelf: Input/output error"),
            "cannot read the documents in the server's store: Input/output error");
  EXPECT_EQ(place.without("/srv/shelf/records is damaged"), "the server's store/records is damaged");
  EXPECT_EQ(place.without("the document /srv is empty"), "the document /srv is empty");
  EXPECT_EQ(HiddenPlace("").without("as it is"), "as it is");
}

TEST(HiddenPlace, ErrorsKeepTheirKind) {
  const HiddenPlace place("/srv/shelf");
  const auto fail = [&place](const auto& error) { place.use([&error] { throw error; }); };
  EXPECT_THROW(fail(UnknownDocument("no x in /srv/shelf")), UnknownDocument);
  EXPECT_THROW(fail(StoreError("/srv/shelf is full")), StoreError);
  EXPECT_THROW(fail(UsageError("/srv/shelf")), UsageError);
  EXPECT_THROW(fail(Interrupted("stopped")), Interrupted);
  try {
    fail(InputError("x in /srv/shelf is damaged"));
  } catch (const StoreError&) {
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(), "x in the server's store is damaged");
  }
  EXPECT_EQ(place.use([] { return 5; }), 5);
}

}  // namespace
}  // namespace winnow::server
