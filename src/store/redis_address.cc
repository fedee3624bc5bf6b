// SPDX-License-Identifier: Apache-2.0
#include "store/redis_address.h"

#include <spdlog/fmt/fmt.h>

#include <charconv>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/percent_encoding.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

constexpr int kLastPort = 65535;
constexpr int kLastDatabase = 1 << 20;

/// Parses an address from left to right. Errors do not quote its parts, since these may be a password.
class Parser {
 public:
  explicit Parser(const std::string& url) : rest_(url) {
    out_.transport = url.starts_with(kTlsScheme) ? RedisAddress::Transport::tls : RedisAddress::Transport::plain;
    const std::string_view scheme = url.starts_with(kTlsScheme) ? kTlsScheme : kPlainScheme;
    rest_.remove_prefix(scheme.size());
    const auto at = rest_.rfind('@');
    const auto who = at == std::string_view::npos ? "" : rest_.substr(0, at);
    if (at != std::string_view::npos) rest_.remove_prefix(at + 1);
    const auto user = who.substr(0, who.find(':'));
    out_.name = fmt::format("{}{}{}{}", scheme, user, user.empty() ? "" : "@", rest_);
    out_.user = decoded(user, "the user");
    if (user.size() < who.size()) out_.password = decoded(who.substr(user.size() + 1), "the password");
  }

  RedisAddress parse() {
    if (const auto slash = rest_.find('/'); slash != std::string_view::npos) {
      if (slash + 1 < rest_.size()) out_.database = number(rest_.substr(slash + 1), kLastDatabase, "the database");
      rest_ = rest_.substr(0, slash);
    }
    const auto host = take_host();
    if (!host.empty()) out_.host = host;
    if (!rest_.empty()) out_.port = number(rest_.substr(1), kLastPort, "the port");
    if (const char* const secret = std::getenv("WINNOW_REDIS_PASSWORD"); secret != nullptr && out_.password.empty())
      out_.password = secret;
    return out_;
  }

 private:
  [[noreturn]] void fail(const std::string& why) const {
    throw UsageError(fmt::format("{}: {} ({})", out_.name, why, kRedisForm));
  }

  /// Leaves the port with its colon.
  std::string_view take_host() {
    std::size_t end = rest_.find(':');
    if (rest_.starts_with('[')) {
      const auto bracket = rest_.find(']');
      if (bracket == std::string_view::npos) fail("the host has a [ without a ]");
      end = bracket + 1;
      if (end < rest_.size() && rest_[end] != ':') fail("only :PORT may follow the host's ]");
    } else if (end != rest_.rfind(':')) {
      fail("an IPv6 address must be in brackets");
    }
    const auto host = rest_.substr(0, end);
    rest_.remove_prefix(host.size());
    return host.starts_with('[') ? host.substr(1, host.size() - 2) : host;
  }

  int number(std::string_view text, int most, const char* what) const {
    int out = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
    if (error != std::errc() || end != text.data() + text.size() || out < 0 || out > most)
      fail(fmt::format("{} is not a number from 0 to {}", what, most));
    return out;
  }

  std::string decoded(std::string_view text, const char* what) const {
    auto out = percent_decoded(text);
    if (!out) fail(fmt::format("{} has a % without two hexadecimal digits after it", what));
    return std::move(*out);
  }

  std::string_view rest_;
  RedisAddress out_;
};

}  // namespace

RedisAddress RedisAddress::parse(const Place& place) {
  auto out = Parser(place.where).parse();
  out.contents = place.contents;
  return out;
}

}  // namespace winnow::store
