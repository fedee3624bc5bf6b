// SPDX-License-Identifier: Apache-2.0
#include "server/hosts.h"

#include <gtest/gtest.h>

namespace winnow::server {
namespace {

bool allows(const Hosts& hosts, const char* host) { return hosts.allow({"GET", "/", {{"host", host}}}); }

TEST(Hosts, AddressesAndLocalhostAreAllowedWithAnyPort) {
  const Hosts hosts({"127.0.0.1"});
  for (const char* const host : {"localhost", "LocalHost:8080", "localhost.", "127.0.0.1", "127.8.8.8:1", "10.0.0.7:80",
                                 "[::1]", "[::1]:8080", "[2001:db8::5]:1"})
    EXPECT_TRUE(allows(hosts, host)) << host;
}

TEST(Hosts, OtherNamesAreNot) {
  const Hosts hosts({"::", "0.0.0.0"});
  for (const char* const host : {"evil.example", "localhost.evil.example", "127.0.0.1.evil.example:8080", "1.2.3",
                                 "0x7f000001", "2130706433", "[evil]", "[::1", "[::1].evil.example", "", ":8080", "*"})
    EXPECT_FALSE(allows(hosts, host)) << host;
}

TEST(Hosts, NamesThatAreListedAreAllowed) {
  const Hosts hosts({"Chat.Example", "box:9000"});
  for (const char* const host : {"chat.example", "CHAT.EXAMPLE:443", "chat.example.", "box", "box:1"})
    EXPECT_TRUE(allows(hosts, host)) << host;
  EXPECT_FALSE(allows(hosts, "chat.example.evil"));
  EXPECT_TRUE(allows(Hosts({"*"}), "evil.example"));
}

TEST(Hosts, RequestWithoutHostComesFromNoBrowser) { EXPECT_TRUE(Hosts({}).allow({})); }

}  // namespace
}  // namespace winnow::server
