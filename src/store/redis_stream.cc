#include "store/redis_stream.h"

#include <openssl/err.h>
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

#include "winnow/error.h"

namespace winnow::store {

namespace {

constexpr timeval kConnectTime{5, 0};
constexpr timeval kAnswerTime{60, 0};

/// Why a call on a socket has failed.
std::string reason(int error) {
  if (error == EAGAIN || error == EWOULDBLOCK) return "no answer in time";
  return error == 0 ? "the server has closed the connection" : std::strerror(error);
}

}  // namespace

RedisStream::RedisStream(const RedisAddress& address)
    : name_(address.name), socket_(redisConnectWithTimeout(address.host.c_str(), address.port, kConnectTime)) {
  if (socket_ == nullptr) throw std::bad_alloc();
  if (socket_->err != 0) fail(socket_->errstr);
  redisSetTimeout(socket_.get(), kConnectTime);
  redisEnableKeepAlive(socket_.get());
  if (address.transport == RedisAddress::Transport::tls) begin_tls(address.host);
  redisSetTimeout(socket_.get(), kAnswerTime);
}

/// The server must show a certificate for that host from somebody whom OpenSSL trusts (SSL_CERT_FILE, SSL_CERT_DIR).
void RedisStream::begin_tls(const std::string& host) {
  context_.reset(SSL_CTX_new(TLS_client_method()));
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
  SSL_set_fd(tls_.get(), socket_->fd);
  ERR_clear_error();
  errno = 0;
  if (const int result = SSL_connect(tls_.get()); result != 1) fail_tls(result);
}

void RedisStream::fail(const std::string& why) const {
  throw InputError(fmt::format("the documents in {} cannot be reached: {}", name_, why));
}

void RedisStream::fail_tls(int result) const {
  const int error = errno;
  const int kind = SSL_get_error(tls_.get(), result);
  if (kind == SSL_ERROR_ZERO_RETURN) fail(reason(0));
  if (kind != SSL_ERROR_SSL) fail(reason(kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE ? EAGAIN : error));
  const long trust = SSL_get_verify_result(tls_.get());
  if (trust != X509_V_OK) fail(fmt::format("its certificate: {}", X509_verify_cert_error_string(trust)));
  const auto code = ERR_get_error();
  if (ERR_GET_REASON(code) == SSL_R_UNEXPECTED_EOF_WHILE_READING) fail(reason(0));
  const char* const why = ERR_reason_error_string(code);
  fail(fmt::format("TLS: {}", why == nullptr ? "it failed" : why));
}

void RedisStream::write(std::string_view bytes) {
  while (!bytes.empty()) {
    errno = 0;
    ssize_t n = 0;
    if (tls_ != nullptr) {
      ERR_clear_error();
      n = SSL_write(tls_.get(), bytes.data(), static_cast<int>(std::min<std::size_t>(bytes.size(), INT_MAX)));
      if (n <= 0) fail_tls(static_cast<int>(n));
    } else {
      n = send(socket_->fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) fail(reason(errno));
    }
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
}

std::size_t RedisStream::read(std::span<char> to) {
  for (;;) {
    errno = 0;
    ssize_t n = 0;
    if (tls_ != nullptr) {
      ERR_clear_error();
      n = SSL_read(tls_.get(), to.data(), static_cast<int>(std::min<std::size_t>(to.size(), INT_MAX)));
      if (n <= 0) fail_tls(static_cast<int>(n));
    } else {
      n = recv(socket_->fd, to.data(), to.size(), 0);
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) fail(reason(errno));
    }
    return static_cast<std::size_t>(n);
  }
}

bool RedisStream::has_input() const {
  pollfd state{socket_->fd, POLLIN, 0};
  return poll(&state, 1, 0) != 0;
}

}  // namespace winnow::store
