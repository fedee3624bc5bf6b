// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace winnow::test {

/// Listens on a free port of this machine and serves each connection in a separate thread.
class LoopbackServer {
 public:
  /// `serve` gets a connected socket, which is closed when it returns.
  explicit LoopbackServer(std::function<void(int fd)> serve)
      : serve_(std::move(serve)), listener_(socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* const at = reinterpret_cast<sockaddr*>(&address);
    if (bind(listener_, at, size) != 0 || listen(listener_, 16) != 0 || getsockname(listener_, at, &size) != 0)
      throw std::runtime_error("no port to listen on");
    port_ = ntohs(address.sin_port);
    accepting_ = std::thread([this] { accept_all(); });
  }
  LoopbackServer(const LoopbackServer&) = delete;
  LoopbackServer& operator=(const LoopbackServer&) = delete;
  ~LoopbackServer() {
    shutdown(listener_, SHUT_RDWR);
    accepting_.join();
    close(listener_);
    for (const int fd : open_) shutdown(fd, SHUT_RDWR);
    for (auto& thread : serving_) thread.join();
    for (const int fd : open_) close(fd);
  }

  std::string url() const { return "redis://127.0.0.1:" + std::to_string(port_); }

 private:
  void accept_all() {
    for (int fd = accept(listener_, nullptr, nullptr); fd >= 0; fd = accept(listener_, nullptr, nullptr)) {
      const int on = 1;
      setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));  // for several small answers in a row
      open_.push_back(fd);
      serving_.emplace_back([this, fd] {
        serve_(fd);
        shutdown(fd, SHUT_RDWR);
      });
    }
  }

  std::function<void(int)> serve_;
  int listener_;
  int port_ = 0;
  std::list<int> open_;
  std::list<std::thread> serving_;
  std::thread accepting_;
};

using Words = std::vector<std::string>;

/// Reads commands and sends the result of `answer` for each, until the other side disconnects.
inline void answer_commands(int fd, const std::function<std::string(const Words&)>& answer) {
  const std::unique_ptr<redisReader, void (*)(redisReader*)> reader(redisReaderCreate(), redisReaderFree);
  std::vector<char> bytes(1U << 16U);
  for (ssize_t n = recv(fd, bytes.data(), bytes.size(), 0); n > 0; n = recv(fd, bytes.data(), bytes.size(), 0)) {
    redisReaderFeed(reader.get(), bytes.data(), static_cast<std::size_t>(n));
    void* command = nullptr;
    while (redisReaderGetReply(reader.get(), &command) == REDIS_OK && command != nullptr) {
      auto* const list = static_cast<redisReply*>(command);
      Words words;
      for (std::size_t i = 0; i < list->elements; ++i) words.emplace_back(list->element[i]->str, list->element[i]->len);
      freeReplyObject(command);
      const std::string reply = answer(words);
      if (send(fd, reply.data(), reply.size(), MSG_NOSIGNAL) < 0) return;
    }
  }
}

inline std::string text_reply(std::string_view text) { return fmt::format("${}\r\n{}\r\n", text.size(), text); }
inline std::string number_reply(std::size_t number) { return fmt::format(":{}\r\n", number); }
inline std::string list_reply(const std::vector<std::string>& replies) {
  return fmt::format("*{}\r\n{}", replies.size(), fmt::join(replies, ""));
}

/// The part of Redis that winnow uses, in memory. Tests can change its answers.
class FakeRedis {
 public:
  /// Replaces the answer to a command.
  using Tamper = std::function<std::string(const Words& command, const std::string& answer)>;

  FakeRedis()
      : server_([this](int fd) {
          std::vector<Words> queued;
          bool queues = false;
          answer_commands(fd, [&](const Words& words) {
            const std::lock_guard lock(mutex_);
            const std::string answer = answer_or_queue(words, queued, queues);
            return tamper_ ? tamper_(words, answer) : answer;
          });
        }) {}

  std::string url() const { return server_.url(); }
  void tamper(Tamper tamper) {
    const std::lock_guard lock(mutex_);
    tamper_ = std::move(tamper);
  }

 private:
  std::string answer_or_queue(const Words& words, std::vector<Words>& queued, bool& queues) {
    if (words.front() == "MULTI") {
      queues = true;
      return "+OK\r\n";
    }
    if (words.front() != "EXEC") {
      if (queues) queued.push_back(words);
      return queues ? "+QUEUED\r\n" : answer(words);
    }
    std::vector<std::string> answers;
    for (const auto& command : queued) answers.push_back(answer(command));
    queued.clear();
    queues = false;
    return list_reply(answers);
  }

  std::string answer(const Words& w) {
    const auto& name = w.front();
    if (name == "HGET") return records_.contains(w[2]) ? text_reply(records_[w[2]]) : "$-1\r\n";
    if (name == "HGETALL") {
      std::vector<std::string> all;
      for (const auto& [key, value] : records_) all.insert(all.end(), {text_reply(key), text_reply(value)});
      return list_reply(all);
    }
    if (name == "HSET") return number_reply(records_.insert_or_assign(w[2], w[3]).second ? 1 : 0);
    if (name == "HDEL") return number_reply(records_.erase(w[2]));
    if (name == "SET") values_[w[1]] = w[2];
    if (name == "APPEND") return number_reply((values_[w[1]] += w[2]).size());
    if (name == "STRLEN") return number_reply(values_.contains(w[1]) ? values_[w[1]].size() : 0);
    if (name == "GETRANGE") return text_reply(range(values_[w[1]], std::stoul(w[2]), std::stol(w[3])));
    if (name == "EXPIRE" || name == "PERSIST") return number_reply(values_.count(w[1]));
    if (name == "UNLINK") return number_reply(values_.erase(w[1]));
    return "+OK\r\n";
  }
  static std::string range(const std::string& value, std::size_t first, long last) {
    if (first >= value.size()) return "";
    return value.substr(first, last < 0 ? std::string::npos : static_cast<std::size_t>(last) + 1 - first);
  }

  std::map<std::string, std::string> records_;
  std::map<std::string, std::string> values_;
  Tamper tamper_;
  std::mutex mutex_;
  LoopbackServer server_;
};

}  // namespace winnow::test
