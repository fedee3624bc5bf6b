// SPDX-License-Identifier: Apache-2.0
#include "store/redis_connection.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <new>
#include <string>

#include "base/as_size.h"
#include "base/printable.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::store {

namespace {

constexpr std::size_t kRead = std::size_t{64} << 10U;

bool fits(int type, ReplyKind expected) {
  switch (expected) {
    case ReplyKind::status:
      return type == REDIS_REPLY_STATUS;
    case ReplyKind::number:
      return type == REDIS_REPLY_INTEGER;
    case ReplyKind::text:
      return type == REDIS_REPLY_STRING;
    case ReplyKind::text_or_nothing:
      return type == REDIS_REPLY_STRING || type == REDIS_REPLY_NIL;
    case ReplyKind::list:
      return type == REDIS_REPLY_ARRAY;
    default:
      return type == REDIS_REPLY_ARRAY || type == REDIS_REPLY_NIL;
  }
}

const char* name_of(ReplyKind kind) {
  switch (kind) {
    case ReplyKind::status:
      return "a status";
    case ReplyKind::number:
      return "a number";
    case ReplyKind::text:
    case ReplyKind::text_or_nothing:
      return "a string";
    default:
      return "a list";
  }
}

const char* name_of_type(int type) {
  switch (type) {
    case REDIS_REPLY_STATUS:
      return "a status";
    case REDIS_REPLY_INTEGER:
      return "a number";
    case REDIS_REPLY_STRING:
      return "a string";
    case REDIS_REPLY_ARRAY:
      return "a list";
    case REDIS_REPLY_NIL:
      return "nothing";
    default:
      return "something else";
  }
}

/// The error code of a reply, such as WRONGPASS. The rest may repeat what was sent.
std::string code_of(std::string_view refusal) {
  const auto end = std::find_if(refusal.begin(), refusal.end(), [](char c) { return c < 'A' || c > 'Z'; });
  return {refusal.begin(), end};
}

}  // namespace

std::string_view text_of(const redisReply& reply) {
  return reply.str == nullptr ? std::string_view() : std::string_view(reply.str, reply.len);
}

RedisConnection::RedisConnection(const RedisAddress& address)
    : name_(address.name), what_(address.what()), stream_(address), reader_(redisReaderCreate()), received_(kRead) {
  if (reader_ == nullptr) throw std::bad_alloc();
  if (!address.password.empty()) log_in(address);
  if (address.database != 0) ask(ReplyKind::status, {"SELECT", std::to_string(address.database)});
}

void RedisConnection::log_in(const RedisAddress& address) {
  if (address.user.empty()) {
    send({"AUTH", address.password});
  } else {
    send({"AUTH", address.user, address.password});
  }
  const auto reply = receive();
  if (reply->type == REDIS_REPLY_ERROR) {
    throw StoreError(
        fmt::format("{} cannot be reached: the server refuses the password ({})", what_, code_of(text_of(*reply))));
  }
  check(*reply, ReplyKind::status);
}

void RedisConnection::fail(const std::string& why) const {
  throw StoreError(fmt::format("{} cannot be read: {}", what_, why));
}

void RedisConnection::check(const redisReply& reply, ReplyKind expected) const {
  if (reply.type == REDIS_REPLY_ERROR)
    throw StoreError(fmt::format("{} refuses the command: {}", name_, printable(text_of(reply))));
  if (!fits(reply.type, expected))
    fail(fmt::format("the server answered with {}, expected {}", name_of_type(reply.type), name_of(expected)));
}

void RedisConnection::send(std::initializer_list<std::string_view> words) {
  std::vector<const char*> data;
  std::vector<std::size_t> lengths;
  for (const auto word : words) {
    data.push_back(word.data());
    lengths.push_back(word.size());
  }
  char* command = nullptr;
  const auto size = redisFormatCommandArgv(&command, static_cast<int>(data.size()), data.data(), lengths.data());
  if (size < 0) throw std::bad_alloc();
  const std::unique_ptr<char, void (*)(char*)> owned(command, redisFreeCommand);
  unsent_.append(command, as_size(size));
}

void RedisConnection::flush() {
  const std::string bytes = std::exchange(unsent_, {});
  stream_.write(bytes);
}

RedisReply RedisConnection::receive() {
  flush();
  for (;;) {
    void* reply = nullptr;
    if (redisReaderGetReply(reader_.get(), &reply) != REDIS_OK)
      fail(fmt::format("the server's answer does not follow Redis's protocol: {}", reader_->errstr));
    if (reply != nullptr) return RedisReply(static_cast<redisReply*>(reply));
    const auto count = stream_.read(received_);
    if (redisReaderFeed(reader_.get(), received_.data(), count) != REDIS_OK) fail(reader_->errstr);
  }
}

RedisReply RedisConnection::next(ReplyKind expected) {
  auto reply = receive();
  check(*reply, expected);
  return reply;
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
