// SPDX-License-Identifier: Apache-2.0
#include "store/redis_stream.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstring>
#include <new>

#include "base/as_size.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::store {

namespace {

constexpr timeval kConnectTime{5, 0};

/// Reason why a call on a socket has failed.
std::string reason(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return "it did not answer in time";
  return error == 0 ? "it closed the connection" : std::strerror(error);
}

[[noreturn]] void fail(const std::string& what, const std::string& why) {
  throw StoreError(fmt::format("{} cannot be reached: {}", what, why));
}

}  // namespace

/// Transport over the socket. Each call moves at least one byte.
class RedisStream::Transport {
 public:
  explicit Transport(std::string what) : what_(std::move(what)) {}
  virtual ~Transport() = default;
  virtual std::size_t send(std::string_view bytes) = 0;
  virtual std::size_t receive(std::span<char> to) = 0;

 protected:
  [[noreturn]] void fail(const std::string& why) const { store::fail(what_, why); }

 private:
  std::string what_;
};

/// Unencrypted transport.
class RedisStream::Plain : public Transport {
 public:
  Plain(std::string what, int socket) : Transport(std::move(what)), socket_(socket) {}

  std::size_t send(std::string_view bytes) override {
    return passed([&] { return ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL); });
  }
  std::size_t receive(std::span<char> to) override {
    return passed([&] { return ::recv(socket_, to.data(), to.size(), 0); });
  }

 private:
  template <class Call>
  std::size_t passed(const Call& call) const {
    for (;;) {
      errno = 0;
      const ssize_t n = call();
      if (n > 0) return as_size(n);
      if (n == 0 || errno != EINTR) fail(reason(errno));
    }
  }

  int socket_;
};

/// With TLS. The server must present a certificate for the host that OpenSSL trusts (SSL_CERT_FILE, SSL_CERT_DIR).
class RedisStream::Tls : public Transport {
 public:
  Tls(std::string what, int socket, const std::string& host)
      : Transport(std::move(what)), context_(SSL_CTX_new(TLS_client_method())) {
    if (context_ == nullptr) throw std::bad_alloc();
    SSL_CTX_set_min_proto_version(context_.get(), TLS1_2_VERSION);
    SSL_CTX_set_default_verify_paths(context_.get());
    SSL_CTX_set_verify(context_.get(), SSL_VERIFY_PEER, nullptr);
    tls_.reset(SSL_new(context_.get()));
    if (tls_ == nullptr) throw std::bad_alloc();
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls_.get()), host.c_str()) != 1) {
      SSL_set1_host(tls_.get(), host.c_str());
      SSL_set_tlsext_host_name(tls_.get(), host.c_str());
    }
    SSL_set_fd(tls_.get(), socket);
    passed([&] { return SSL_connect(tls_.get()); });
  }

  std::size_t send(std::string_view bytes) override {
    return passed([&] { return SSL_write(tls_.get(), bytes.data(), at_most(bytes.size())); });
  }
  std::size_t receive(std::span<char> to) override {
    return passed([&] { return SSL_read(tls_.get(), to.data(), at_most(to.size())); });
  }

 private:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* tls) const { SSL_free(tls); }
  };

  static int at_most(std::size_t bytes) { return static_cast<int>(std::min<std::size_t>(bytes, INT_MAX)); }

  template <class Call>
  std::size_t passed(const Call& call) const {
    ERR_clear_error();
    errno = 0;
    const int n = call();
    if (n <= 0) fail_tls(n);
    return as_size(n);
  }

  [[noreturn]] void fail_tls(int result) const {
    const int error = errno;
    const int kind = SSL_get_error(tls_.get(), result);
    if (kind == SSL_ERROR_ZERO_RETURN) fail(reason(0));
    if (kind != SSL_ERROR_SSL)
      fail(reason(kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE ? EAGAIN : error));
    const long trust = SSL_get_verify_result(tls_.get());
    if (trust != X509_V_OK) fail(fmt::format("its certificate: {}", X509_verify_cert_error_string(trust)));
    const auto code = ERR_get_error();
    if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) fail(reason(0));
    const char* const why = ERR_reason_error_string(code);
    fail(fmt::format("TLS: {}", why == nullptr ? "it failed" : why));
  }

  std::unique_ptr<SSL_CTX, Free> context_;
  std::unique_ptr<SSL, Free> tls_;
};

RedisStream::RedisStream(const RedisAddress& address)
    : socket_(redisConnectWithTimeout(address.host.c_str(), address.port, kConnectTime)) {
  if (socket_ == nullptr) throw std::bad_alloc();
  if (socket_->err != 0) fail(address.what(), socket_->errstr);
  redisSetTimeout(socket_.get(), kConnectTime);
  redisEnableKeepAlive(socket_.get());
  if (address.transport == RedisAddress::Transport::tls) {
    transport_ = std::make_unique<Tls>(address.what(), socket_->fd, address.host);
  } else {
    transport_ = std::make_unique<Plain>(address.what(), socket_->fd);
  }
  redisSetTimeout(socket_.get(), {address.answer_seconds, 0});
}

RedisStream::~RedisStream() = default;

void RedisStream::write(std::string_view bytes) {
  while (!bytes.empty()) bytes.remove_prefix(transport_->send(bytes));
}

std::size_t RedisStream::read(std::span<char> to) { return transport_->receive(to); }

bool RedisStream::has_input() const {
  pollfd state{socket_->fd, POLLIN, 0};
  return poll(&state, 1, 0) != 0;
}

}  // namespace winnow::store
