// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <hiredis/hiredis.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/temp.h"

namespace winnow::test {

/// A separate Redis server on a free port of this machine; the destructor ends it.
class RedisServer {
 public:
  static bool is_installed() { return std::system("command -v redis-server >/dev/null 2>&1") == 0; }

  /// `host`: an address of this machine. `port_option`: the option that sets the port.
  explicit RedisServer(const std::vector<std::string>& options = {}, const std::string& host = "127.0.0.1",
                       const std::string& port_option = "--port")
      : host_(host), port_(free_port()) {
    words_ = {"redis-server", port_option, std::to_string(port_), "--bind",       host_, "--dir", folder_ / "",
              "--save",       "",          "--logfile",           folder_ / "log"};
    words_.insert(words_.end(), options.begin(), options.end());
    start();
  }
  RedisServer(const RedisServer&) = delete;
  RedisServer& operator=(const RedisServer&) = delete;
  ~RedisServer() { stop(); }

  /// Starts it after a stop(), empty.
  void start() {
    std::vector<char*> arguments;
    for (auto& word : words_) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    process_ = fork();
    if (process_ == 0) {
      execvp(arguments.front(), arguments.data());
      _exit(127);
    }
    wait_until_up();
  }
  void stop() {
    if (process_ <= 0) return;
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  /// `who`: "USER:PASSWORD@", or empty.
  std::string url(const std::string& scheme = "redis://", const std::string& who = "") const {
    return scheme + who + (host_.find(':') == std::string::npos ? host_ : "[" + host_ + "]") + ":" +
           std::to_string(port_);
  }

 private:
  static int free_port() {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    bind(fd, reinterpret_cast<const sockaddr*>(&address), size);
    getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
    close(fd);
    return ntohs(address.sin_port);
  }
  void wait_until_up() const {
    for (int i = 0; i < 500; ++i) {
      const std::unique_ptr<redisContext, void (*)(redisContext*)> connection(redisConnect(host_.c_str(), port_),
                                                                              redisFree);
      if (connection != nullptr && connection->err == 0) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
    throw std::runtime_error("redis-server does not answer");
  }

  TempFolder folder_;
  std::string host_;
  int port_;
  std::vector<std::string> words_;
  pid_t process_ = 0;
};

}  // namespace winnow::test
