// SPDX-License-Identifier: Apache-2.0
#include "server/http/router.h"

#include <gtest/gtest.h>

namespace winnow::server {
namespace {

class RouterTest : public ::testing::Test {
 protected:
  RouterTest() {
    for (const auto* const path : {"/", "/things", "/things/{}", "/things/{}/kept"}) router_.add({"GET", path, {}, {}});
    router_.add({"DELETE", "/things/{}", {}, {}});
  }

  /// The path of the route that takes `path`, and its parameter.
  std::string taken(std::string_view path) const {
    const Route* const route = router_.find("GET", path);
    if (route == nullptr) return "none";
    return route->path + " " + parameter_of(*route, path).value_or("not encoded");
  }

  Router router_;
};

TEST_F(RouterTest, PartStandsForParameter) {
  EXPECT_EQ(taken("/"), "/ ");
  EXPECT_EQ(taken("/things"), "/things ");
  EXPECT_EQ(taken("/things/a"), "/things/{} a");
  EXPECT_EQ(taken("/things/a/kept"), "/things/{}/kept a");
}

TEST_F(RouterTest, OtherPathsTakeNoRoute) {
  for (const auto* const path : {"", "x", "//", "/thing", "/things/", "/things//", "/things/a/", "/things/a/b",
                                 "/things//kept", "/things/a/kept/b", "/x/a/kept"})
    EXPECT_EQ(taken(path), "none") << path;
}

TEST_F(RouterTest, ParameterIsDecoded) {
  EXPECT_EQ(taken("/things/a%2Fb%20%c3%A9+"), "/things/{} a/b \xC3\xA9+");
  EXPECT_EQ(taken("/things/%25%32%35"), "/things/{} %25");
  for (const auto* const bad : {"%", "%2", "a%", "%zz", "%2z", "%-1", "%+1"})
    EXPECT_EQ(taken(std::string("/things/") + bad), "/things/{} not encoded") << bad;
}

TEST_F(RouterTest, MethodsOfPath) {
  EXPECT_EQ(router_.methods_of("/things/a"), "GET, DELETE");
  EXPECT_EQ(router_.methods_of("/things"), "GET");
  EXPECT_EQ(router_.find("DELETE", "/things"), nullptr);
  EXPECT_EQ(router_.find("HEAD", "/things"), router_.find("GET", "/things"));
}

}  // namespace
}  // namespace winnow::server
