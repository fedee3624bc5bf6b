#include "store/redis_connection.h"

#include <poll.h>
#include <spdlog/fmt/fmt.h>
#include <sys/time.h>

#include <cerrno>
#include <charconv>
#include <new>
#include <string>

#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

constexpr timeval kConnectTime{5, 0};
constexpr timeval kAnswerTime{60, 0};

int number_of(std::string_view text, int most, const std::string& url, const char* what) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || number < 0 || number > most) {
    throw UsageError(fmt::format("{}: {} is `{}`, expected a number up to {} (redis://HOST[:PORT][/DATABASE])", url,
                                 what, text, most));
  }
  return number;
}

}  // namespace

RedisAddress RedisAddress::parse(const std::string& url) {
  RedisAddress out;
  out.url = url;
  std::string_view rest = std::string_view(url).substr(std::string_view(kRedisScheme).size());
  if (const auto slash = rest.find('/'); slash != std::string_view::npos) {
    if (slash + 1 < rest.size()) out.database = number_of(rest.substr(slash + 1), 1 << 20U, url, "the database");
    rest = rest.substr(0, slash);
  }
  if (const auto colon = rest.rfind(':'); colon != std::string_view::npos) {
    out.port = number_of(rest.substr(colon + 1), 65535, url, "the port");
    rest = rest.substr(0, colon);
  }
  if (!rest.empty()) out.host = rest;
  return out;
}

std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view() : std::string_view(reply.str, reply.len);
}

RedisConnection::RedisConnection(const RedisAddress& address)
    : url_(address.url), context_(redisConnectWithTimeout(address.host.c_str(), address.port, kConnectTime)) {
  if (context_ == nullptr) throw std::bad_alloc();
  if (context_->err != 0) fail(context_->errstr);
  redisSetTimeout(context_.get(), kAnswerTime);
  redisEnableKeepAlive(context_.get());
  if (address.database != 0) ask({"SELECT", std::to_string(address.database)});
}

void RedisConnection::fail(const std::string& why) const {
  throw InputError(fmt::format("the documents in {} cannot be reached: {}", url_, why));
}

void RedisConnection::send(std::span<const std::string_view> words) {
  std::vector<const char*> data;
  std::vector<std::size_t> lengths;
  for (const auto word : words) {
    data.push_back(word.data());
    lengths.push_back(word.size());
  }
  if (redisAppendCommandArgv(context_.get(), static_cast<int>(data.size()), data.data(), lengths.data()) != REDIS_OK)
    fail(context_->errstr);
}

RedisReply RedisConnection::next() {
  void* reply = nullptr;
  if (redisGetReply(context_.get(), &reply) != REDIS_OK) {
    fail(context_->err == REDIS_ERR_IO && errno == EAGAIN ? fmt::format("no answer in {} s", kAnswerTime.tv_sec)
                                                          : context_->errstr);
  }
  RedisReply out(static_cast<redisReply*>(reply));
  if (out->type == REDIS_REPLY_ERROR) throw InputError(fmt::format("{} refuses: {}", url_, text_of(*out)));
  return out;
}

RedisReply RedisConnection::ask(std::span<const std::string_view> words) {
  send(words);
  return next();
}

bool RedisConnection::was_closed() const {
  pollfd state{context_->fd, POLLIN, 0};
  return is_broken() || poll(&state, 1, 0) != 0;
}

std::unique_ptr<RedisConnection> RedisPool::take() {
  {
    const std::lock_guard lock(mutex_);
    while (!idle_.empty()) {
      auto connection = std::move(idle_.back());
      idle_.pop_back();
      if (!connection->was_closed()) return connection;
    }
  }
  return std::make_unique<RedisConnection>(address_);
}

void RedisPool::put(std::unique_ptr<RedisConnection> connection) {
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(connection));
}

}  // namespace winnow::store
