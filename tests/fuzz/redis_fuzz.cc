// SPDX-License-Identifier: Apache-2.0
// Any bytes as answers of a Redis server, one for each command: a length of four bytes, then the answer. Each request
// to the store must return a valid result or throw an InputError.
#include <sys/time.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>
#include <string_view>

#include "base/log.h"
#include "fuzz/redis_session.h"
#include "store/fake_redis.h"

namespace {

/// Hands out the answers one after another, to any connection.
class Answers {
 public:
  explicit Answers(std::string_view bytes) : left_(bytes) {}
  /// The next answer; empty: there are no more.
  std::string next() {
    const std::lock_guard lock(mutex_);
    std::uint32_t length = 0;
    if (left_.size() < sizeof(length)) return "";
    std::memcpy(&length, left_.data(), sizeof(length));
    left_.remove_prefix(sizeof(length));
    const auto out = left_.substr(0, length);
    left_.remove_prefix(out.size());
    return std::string(out);
  }

 private:
  std::string_view left_;
  std::mutex mutex_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  Answers answers({data, size});
  const winnow::test::LoopbackServer server([&](int fd) {
    const timeval patience{0, 10'000};  // nothing more comes after a cut answer
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    winnow::test::answer_commands(fd, [&](const winnow::test::Words&) {
      auto answer = answers.next();
      if (answer.empty()) shutdown(fd, SHUT_RDWR);
      return answer;
    });
  });
  winnow::test::use_archive_at(server.url());
  return 0;
}
