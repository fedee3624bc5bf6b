// SPDX-License-Identifier: Apache-2.0
// Redis servers: real ones, and ones with wrong answers.
#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>

#include "store/fake_redis.h"
#include "store/redis_address.h"
#include "store/redis_server.h"
#include "store/some_bytes.h"
#include "support/refusal.h"
#include "winnow/error.h"

namespace winnow::store {
namespace {

using test::add;
using test::bytes_of;
using test::pattern;
using test::refusal;
using test::text_of;

RedisAddress parsed(const std::string& url) { return RedisAddress::parse({url}); }
std::string misuse(const std::string& url) {
  try {
    store::open({url}, Missing::is_an_error);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

TEST(RedisAddressTest, has_all_parts) {
  const auto all = parsed("rediss://ann:a%40b:%2f@cache.example:7000/3");
  EXPECT_EQ(all.transport, RedisAddress::Transport::tls);
  EXPECT_EQ(all.user, "ann");
  EXPECT_EQ(all.password, "a@b:/");
  EXPECT_EQ(all.host, "cache.example");
  EXPECT_EQ(all.port, 7000);
  EXPECT_EQ(all.database, 3);
  EXPECT_EQ(all.name, "rediss://ann@cache.example:7000/3");

  const auto none = parsed("redis://");
  EXPECT_EQ(none.transport, RedisAddress::Transport::plain);
  EXPECT_EQ(none.host, "127.0.0.1");
  EXPECT_EQ(none.port, 6379);
  EXPECT_EQ(none.database, 0);
  EXPECT_EQ(none.password, "");

  EXPECT_EQ(parsed("redis://:secret@host").name, "redis://host");
  EXPECT_EQ(parsed("redis://:secret@host").password, "secret");
  EXPECT_EQ(parsed("redis://:a/b@c@host:1").password, "a/b@c");
  EXPECT_EQ(parsed("redis://[::1]:7001/2").host, "::1");
  EXPECT_EQ(parsed("redis://[::1]:7001/2").port, 7001);
  EXPECT_EQ(parsed("redis://[fe80::1]").host, "fe80::1");
}

TEST(RedisAddressTest, the_password_may_come_from_the_environment) {
  setenv("WINNOW_REDIS_PASSWORD", "secret", 1);
  EXPECT_EQ(parsed("redis://host").password, "secret");
  EXPECT_EQ(parsed("redis://:other@host").password, "other");
  unsetenv("WINNOW_REDIS_PASSWORD");
  EXPECT_EQ(parsed("redis://host").password, "");
}

TEST(RedisAddressTest, what_cannot_be_is_named_without_the_password) {
  for (const auto& [url, why] : std::vector<std::pair<std::string, std::string>>{
           {"redis://localhost:port", "the port is not a number from 0 to 65535"},
           {"redis://localhost:65536", "the port is not a number from 0 to 65535"},
           {"redis://localhost:1/two", "the database is not a number"},
           {"redis://::1:6379", "an IPv6 address must be in brackets"},
           {"redis://[::1", "the host has a [ without a ]"},
           {"redis://[::1]6379", "only :PORT may follow the host's ]"},
           {"redis://ann:secret@host:port", "redis://ann@host:port: the port"},
           {"redis://ann:secret%2@host", "two hexadecimal digits"},
           {"redis://:secret/x@host:port", "redis://host:port: the port"},
           {"foo://ann:secret@host", "documents cannot be stored at foo://"},
           {"http://secret", "documents cannot be stored at http://"},
           {"REDIS://host", "documents cannot be stored at REDIS://"}}) {
    EXPECT_NE(misuse(url).find(why), std::string::npos) << url << ": " << misuse(url);
    EXPECT_EQ(misuse(url).find("secret"), std::string::npos) << misuse(url);
  }
}

TEST(RedisTest, a_server_that_is_not_there_is_named_with_what_it_was_to_keep) {
  for (const std::string contents : {"documents", "sessions"}) {
    const auto why = refusal([&] { store::open({"redis://127.0.0.1:1", contents}, Missing::is_created); });
    EXPECT_EQ(why.find("the " + contents + " in redis://127.0.0.1:1 cannot be reached: "), 0U) << why;
  }
}

/// Adds a value and reads it back.
void use(const std::string& url) {
  add(*store::open({url}, Missing::is_created), "0000", pattern(100'000, 1));
  const auto lease = store::open({url}, Missing::is_created)->value("0000", std::span(&kWhole, 1));
  ASSERT_TRUE(lease);
  const Bytes expected = pattern(100'000, 1);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), lease->parts.front().begin(), lease->parts.front().end()));
}

class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::RedisServer::is_installed())
      GTEST_SKIP() << "redis-server is not installed: the shared store is not tested";
  }
};

TEST_F(ServerTest, wants_a_password) {
  const test::RedisServer server({"--requirepass", "se:c/ret"});
  use(server.url("redis://", ":se%3Ac%2Fret@"));
  const auto wrong = refusal([&] { use(server.url("redis://", ":s3cret@")); });
  EXPECT_NE(wrong.find(server.url() + " cannot be reached: the server refuses the password (WRONGPASS)"),
            std::string::npos)
      << wrong;
  EXPECT_EQ(wrong.find("s3cret"), std::string::npos);
  EXPECT_NE(refusal([&] { use(server.url()); }).find("NOAUTH"), std::string::npos);
  setenv("WINNOW_REDIS_PASSWORD", "se:c/ret", 1);
  use(server.url());
  unsetenv("WINNOW_REDIS_PASSWORD");
}

TEST_F(ServerTest, knows_users) {
  const test::RedisServer server({"--user", "ann", "on", ">secret", "~winnow:*", "+@all", "--user", "default", "off"});
  use(server.url("redis://", "ann:secret@"));
  EXPECT_NE(refusal([&] { use(server.url("redis://", "bob:secret@")); }).find("WRONGPASS"), std::string::npos);
  EXPECT_NE(refusal([&] { use(server.url("redis://", ":secret@")); }).find("WRONGPASS"), std::string::npos);
}

TEST_F(ServerTest, has_an_address_of_ipv6) {
  const int fd = socket(AF_INET6, SOCK_STREAM, 0);
  sockaddr_in6 address{};
  address.sin6_family = AF_INET6;
  address.sin6_addr = in6addr_loopback;
  const bool there = bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  close(fd);
  if (!there) GTEST_SKIP() << "this machine has no ::1";
  const test::RedisServer server({}, "::1");
  use(server.url());
}

/// A server that accepts only TLS, with a certificate for 127.0.0.1 by an unknown authority.
class TlsTest : public ServerTest {
 protected:
  void SetUp() override {
    ServerTest::SetUp();
    if (IsSkipped()) return;
    if (std::system("command -v openssl >/dev/null 2>&1") != 0) GTEST_SKIP() << "openssl is not installed";
    const std::string make = "cd " + folder_ / "" +
                             " && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem"
                             " -out cert.pem -days 2 -subj /CN=winnow -addext subjectAltName=IP:127.0.0.1 2>log";
    ASSERT_EQ(std::system(make.c_str()), 0) << make;
    server_.emplace(std::vector<std::string>{"--port", "0", "--tls-cert-file", folder_ / "cert.pem", "--tls-key-file",
                                             folder_ / "key.pem", "--tls-ca-cert-file", folder_ / "cert.pem",
                                             "--tls-auth-clients", "no", "--requirepass", "secret"},
                    "127.0.0.1", "--tls-port");
    if (const char* const before = std::getenv("SSL_CERT_FILE"); before != nullptr) before_ = before;
    setenv("SSL_CERT_FILE", (folder_ / "cert.pem").c_str(), 1);
  }
  void TearDown() override {
    if (before_.empty()) {
      unsetenv("SSL_CERT_FILE");
    } else {
      setenv("SSL_CERT_FILE", before_.c_str(), 1);
    }
  }

  test::TempFolder folder_;
  std::optional<test::RedisServer> server_;
  std::string before_;
};

TEST_F(TlsTest, works_with_a_trusted_certificate) {
  use(server_->url("rediss://", ":secret@"));
  EXPECT_NE(refusal([&] { use(server_->url("rediss://", ":other@")); }).find("WRONGPASS"), std::string::npos);
  server_->stop();
  EXPECT_NE(refusal([&] { use(server_->url("rediss://", ":secret@")); }).find("cannot be reached"), std::string::npos);
}

TEST_F(TlsTest, another_name_or_an_unknown_certificate_is_refused) {
  std::string other = server_->url("rediss://", ":secret@");
  other.replace(other.find("127.0.0.1"), 9, "localhost");
  EXPECT_NE(refusal([&] { use(other); }).find("its certificate: hostname mismatch"), std::string::npos)
      << refusal([&] { use(other); });
  unsetenv("SSL_CERT_FILE");
  const auto unknown = refusal([&] { use(server_->url("rediss://", ":secret@")); });
  EXPECT_NE(unknown.find("cannot be reached: its certificate: "), std::string::npos) << unknown;
}

TEST_F(TlsTest, a_plain_server_and_a_tls_server_are_told_apart) {
  EXPECT_FALSE(refusal([&] { use(server_->url("redis://", ":secret@")); }).empty());
  const test::RedisServer plain;
  const auto says = refusal([&] { use(plain.url("rediss://")); });
  EXPECT_NE(says.find("cannot be reached: "), std::string::npos) << says;
}

TEST(FakeRedisTest, does_what_a_store_needs) {
  const test::FakeRedis server;
  use(server.url());
  const auto store = store::open({server.url()}, Missing::is_created);
  store->change([](Change& change) {
    change.put_record("n/a", bytes_of("1"));
    change.erase_value("0000");
  });
  EXPECT_EQ(text_of(*store->record("n/a")), "1");
  EXPECT_EQ(store->records("").size(), 1U);
  EXPECT_FALSE(store->value("0000", {}));
}

/// The answer to GETRANGE has a wrong number of bytes.
TEST(FakeRedisTest, parts_of_other_lengths_are_refused) {
  test::FakeRedis server;
  const auto store = store::open({server.url()}, Missing::is_created);
  add(*store, "0000", pattern(1000, 1));
  const std::vector<ByteRange> ranges{{0, 10}, {990, 2000}, kWhole};
  ASSERT_TRUE(store->value("0000", ranges));
  for (const std::string wrong : {"", "012345678", "0123456789a"}) {
    for (const std::string first : {"0", "990"}) {
      server.tamper([&](const test::Words& words, const std::string& answer) {
        return words.front() == "GETRANGE" && words[2] == first ? test::text_reply(wrong) : answer;
      });
      const auto says = refusal([&] { store->value("0000", ranges); });
      EXPECT_NE(says.find("a value of 1000 bytes with lengths other than requested"), std::string::npos) << says;
    }
  }
  // A value that is removed between the two commands is missing.
  server.tamper([](const test::Words& words, const std::string& answer) {
    if (words.front() == "GETRANGE") return test::text_reply("");
    static bool again = false;
    if (words.front() == "STRLEN") return std::exchange(again, true) ? test::number_reply(0) : answer;
    return answer;
  });
  EXPECT_FALSE(store->value("0000", ranges));
}

/// With any answer to one command, a store works or reports an error in one sentence.
TEST(FakeRedisTest, any_answer_to_any_command_is_borne) {
  const std::vector<std::string> answers{"+OK\r\n",
                                         ":1\r\n",
                                         ":-7\r\n",
                                         ":99999999999999999999\r\n",
                                         "$-1\r\n",
                                         "$0\r\n\r\n",
                                         "$2\r\nab\r\n",
                                         "*0\r\n",
                                         "*-1\r\n",
                                         "*1\r\n+OK\r\n",
                                         "*1\r\n*1\r\n:1\r\n",
                                         "*2\r\n$1\r\na\r\n:5\r\n",
                                         "-ERR no\r\n",
                                         "nonsense\r\n",
                                         "$-5\r\n",
                                         "*3\r\n$-1\r\n$-1\r\n$-1\r\n"};
  for (const std::string command : {"PING", "HGET", "HGETALL", "STRLEN", "GETRANGE", "SET", "APPEND", "WATCH", "MULTI",
                                    "HSET", "PERSIST", "EXPIRE", "UNLINK", "EXEC"}) {
    for (const auto& wrong : answers) {
      test::FakeRedis server;
      add(*store::open({server.url()}, Missing::is_created), "0000", pattern(1000, 1));
      server.tamper([&](const test::Words& words, const std::string& answer) {
        return words.front() == command ? wrong : answer;
      });
      std::optional<Lease> lease;
      refusal([&] {
        const auto store = store::open({server.url()}, Missing::is_created);
        refusal([&] { store->record("n/a"); });
        refusal([&] { store->records(""); });
        refusal([&] { lease = store->value("0000", std::span(&kWhole, 1)); });
        int tries = 0;
        refusal([&] {
          store->change([&](Change& change) {
            if (++tries > 3) throw InputError("somebody else is always faster");
            change.put_record("n/a", bytes_of("1"));
            change.erase_value("0000");
            change.add_value("0001", 3, [](ByteSink& to) { to.write(bytes_of("abc")); });
          });
        });
      });
      EXPECT_TRUE(!lease || lease->parts.front().size() == lease->size) << command << " " << wrong;
    }
  }
}

TEST(RedisTest, a_server_that_is_gone_is_an_error_and_one_that_is_back_is_not) {
  if (!test::RedisServer::is_installed())
    GTEST_SKIP() << "redis-server is not installed: the shared store is not tested";
  test::RedisServer server;
  const auto store = store::open({server.url()}, Missing::is_created);
  add(*store, "0000", pattern(1000, 1));
  server.stop();
  EXPECT_NE(refusal([&] { store->value("0000", std::span(&kWhole, 1)); }).find("cannot be reached"), std::string::npos);
  EXPECT_NE(refusal([&] { add(*store, "0001", pattern(1000, 1)); }).find("cannot be reached"), std::string::npos);
}

TEST(RedisTest, a_full_server_refuses_and_keeps_what_it_has) {
  if (!test::RedisServer::is_installed())
    GTEST_SKIP() << "redis-server is not installed: the shared store is not tested";
  test::RedisServer server({"--maxmemory", "20mb", "--maxmemory-policy", "noeviction"});
  const auto store = store::open({server.url()}, Missing::is_created);
  add(*store, "0000", pattern(1'000'000, 1));
  EXPECT_NE(refusal([&] { add(*store, "0001", pattern(60'000'000, 2)); }).find("refuses the command: OOM"),
            std::string::npos);
  EXPECT_FALSE(store->value("0001", {}));
  add(*store, "0002", pattern(1'000'000, 3));
  EXPECT_TRUE(store->value("0000", {}));
}

}  // namespace
}  // namespace winnow::store
