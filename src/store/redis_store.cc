// SPDX-License-Identifier: Apache-2.0
// Records are fields of one hash, which is watched during a change. Values are strings. A value is written before the
// change that refers to it, with a time to live that the change removes, so values of killed processes expire.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>

#include "base/as_size.h"
#include "store/changed_records.h"
#include "store/redis_connection.h"
#include "store/stores.h"
#include "winnow/error.h"
#include "winnow/store_error.h"

namespace winnow::store {

namespace {

constexpr const char* kRecordsHash = "winnow:records";
constexpr const char* kValuePrefix = "winnow:value:";
constexpr const char* kUnconfirmedSeconds = "3600";
constexpr std::size_t kChunk = std::size_t{4} << 20U;  ///< bytes of a value that are sent at once
constexpr int kChangeTries = 1000;

std::string value_key(const std::string& key) { return kValuePrefix + key; }
std::string_view as_text(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
std::span<const std::byte> bytes_of(const redisReply& reply) { return std::as_bytes(std::span(text_of(reply))); }
Bytes copy_of(const redisReply& reply) {
  const auto bytes = bytes_of(reply);
  return {bytes.begin(), bytes.end()};
}

std::optional<Bytes> find_record(RedisConnection& redis, const std::string& key) {
  const auto reply = redis.ask(ReplyKind::text_or_nothing, {"HGET", kRecordsHash, key});
  return reply->type == REDIS_REPLY_NIL ? std::nullopt : std::optional(copy_of(*reply));
}

Records find_records(RedisConnection& redis, const std::string& prefix) {
  const auto reply = redis.ask(ReplyKind::list, {"HGETALL", kRecordsHash});
  const auto all = std::span(reply->element, reply->elements);
  if (all.size() % 2 != 0)
    redis.fail(fmt::format("the server answered with {} keys and values, an odd number", all.size()));
  for (const auto* const element : all) redis.check(*element, ReplyKind::text);
  Records out;
  for (std::size_t i = 0; i < all.size(); i += 2) {
    std::string key(text_of(*all[i]));
    if (key.starts_with(prefix)) out.emplace(std::move(key), copy_of(*all[i + 1]));
  }
  return out;
}

/// A length reported by the server.
std::size_t length_of(RedisConnection& redis, const redisReply& reply) {
  if (reply.integer < 0) redis.fail(fmt::format("the server says that a value has {} bytes", reply.integer));
  return as_size(reply.integer);
}

/// Sends a value in chunks.
class AppendingSink : public ByteSink {
 public:
  AppendingSink(RedisConnection& redis, std::string key) : redis_(redis), key_(std::move(key)) {
    redis_.ask(ReplyKind::status, {"SET", key_, "", "EX", kUnconfirmedSeconds});
  }
  void write(std::span<const std::byte> bytes) override {
    written_ += bytes.size();
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), kChunk - chunk_.size()));
      chunk_.append(as_text(part));
      bytes = bytes.subspan(part.size());
      if (chunk_.size() == kChunk) flush();
    }
  }
  void flush() {
    if (chunk_.empty()) return;
    sent_ += chunk_.size();
    const auto there = length_of(redis_, *redis_.ask(ReplyKind::number, {"APPEND", key_, chunk_}));
    if (there != sent_) redis_.fail(fmt::format("a value has {} bytes on the server, expected {}", there, sent_));
    chunk_.clear();
  }
  std::size_t written() const { return written_; }

 private:
  RedisConnection& redis_;
  std::string key_;
  std::string chunk_;
  std::size_t written_ = 0;
  std::size_t sent_ = 0;
};

/// Makes a change. Values are written before it is tried; changes of records are collected and sent together.
class RedisChange : public ChangedRecords {
 public:
  explicit RedisChange(RedisConnection& redis) : redis_(redis) {}

  void begin() {
    redis_.ask(ReplyKind::status, {"WATCH", kRecordsHash});
    forget();
    added_.clear();
    erased_.clear();
  }
  /// Returns false if another process was faster.
  bool commit() {
    confirm_values();
    in_doubt_ = true;
    redis_.send({"MULTI"});
    std::size_t commands = 1;
    const auto queue = [&](std::initializer_list<std::string_view> words) {
      redis_.send(words);
      ++commands;
    };
    for (const auto& key : added_) queue({"PERSIST", key});
    for (const auto& [key, bytes] : changed()) {
      bytes ? queue({"HSET", kRecordsHash, key, as_text(*bytes)}) : queue({"HDEL", kRecordsHash, key});
    }
    for (const auto& key : erased_) queue({"UNLINK", key});
    redis_.send({"EXEC"});
    for (std::size_t i = 0; i < commands; ++i) redis_.next(ReplyKind::status);
    const auto all = redis_.next(ReplyKind::list_or_nothing);
    if (all->type != REDIS_REPLY_NIL) check_done(*all, commands - 1);
    in_doubt_ = false;
    return all->type != REDIS_REPLY_NIL;
  }
  /// Values that were written but not referred to by a change.
  std::vector<std::string> unused() const {
    std::vector<std::string> out;
    std::set_difference(written_.begin(), written_.end(), added_.begin(), added_.end(), std::back_inserter(out));
    return out;
  }
  /// Values to remove when a change fails; none if it may have happened.
  std::vector<std::string> abandoned() const {
    return in_doubt_ ? std::vector<std::string>() : std::vector(written_.begin(), written_.end());
  }

  void add_value(const std::string& key, std::size_t size, const std::function<void(ByteSink&)>& fill) override {
    const std::string full = value_key(key);
    added_.insert(full);
    if (!written_.insert(full).second) return;  // written by an earlier try
    AppendingSink sink(redis_, full);
    fill(sink);
    sink.flush();
    if (sink.written() != size) throw std::logic_error("a value does not have as many bytes as announced");
  }
  void erase_value(const std::string& key) override { erased_.insert(value_key(key)); }

 private:
  std::optional<Bytes> stored_record(const std::string& key) override { return find_record(redis_, key); }
  Records stored_records(const std::string& prefix) override { return find_records(redis_, prefix); }
  /// Checks that each command succeeded.
  void check_done(const redisReply& all, std::size_t commands) const {
    if (all.elements != commands)
      redis_.fail(fmt::format("the server executed {} of {} commands", all.elements, commands));
    for (const auto* const element : std::span(all.element, all.elements)) redis_.check(*element, ReplyKind::number);
  }
  /// Checks that the change's values exist, and extends their time to live.
  void confirm_values() {
    for (const auto& key : added_) redis_.send({"EXPIRE", key, kUnconfirmedSeconds});
    std::size_t there = 0;
    for (std::size_t i = 0; i < added_.size(); ++i) there += redis_.next(ReplyKind::number)->integer == 1 ? 1U : 0U;
    if (there < added_.size())
      throw StoreError(fmt::format("{} of {} values that were just written are gone from the server",
                                   added_.size() - there, added_.size()));
  }

  RedisConnection& redis_;
  std::set<std::string> added_;  ///< values of this try
  std::set<std::string> erased_;
  std::set<std::string> written_;  ///< values of all tries
  bool in_doubt_ = false;          ///< sent, but not answered
};

/// Replies that contain a lease's parts.
using Replies = std::vector<RedisReply>;

class RedisStore : public ByteStore {
 public:
  explicit RedisStore(const Place& place) : pool_(RedisAddress::parse(place)) {
    RedisPool::Use use(pool_);
    use.connection().ask(ReplyKind::status, {"PING"});
    use.done();
  }

  const std::string& name() const override { return pool_.address().name; }

  std::optional<Bytes> record(const std::string& key) const override {
    RedisPool::Use use(pool_);
    auto out = find_record(use.connection(), key);
    use.done();
    return out;
  }
  Records records(const std::string& prefix) const override {
    RedisPool::Use use(pool_);
    auto out = find_records(use.connection(), prefix);
    use.done();
    return out;
  }
  std::optional<Lease> value(const std::string& key, std::span<const ByteRange> ranges) const override {
    RedisPool::Use use(pool_);
    auto& redis = use.connection();
    const std::string full = value_key(key);
    redis.send({"STRLEN", full});
    for (const auto& range : ranges) {
      if (range.begin >= range.end) continue;
      redis.send({"GETRANGE", full, std::to_string(range.begin),
                  range.end == SIZE_MAX ? "-1" : std::to_string(range.end - 1)});
    }
    Lease lease;
    lease.size = length_of(redis, *redis.next(ReplyKind::number));
    const auto replies = std::make_shared<Replies>();
    for (const auto& range : ranges) {
      if (range.begin < range.end) replies->push_back(redis.next(ReplyKind::text));
      lease.parts.push_back(range.begin < range.end ? bytes_of(*replies->back()) : std::span<const std::byte>());
    }
    if (lease.size > 0 && !are_whole(lease, ranges)) check_gone(redis, full);
    use.done();
    lease.hold = replies;
    return are_whole(lease, ranges) && lease.size > 0 ? std::optional(std::move(lease)) : std::nullopt;
  }
  void change(const std::function<void(Change&)>& make) override {
    RedisPool::Use use(pool_);
    RedisChange change(use.connection());
    std::minstd_rand random(std::random_device{}());
    try {
      for (int i = 0; i < kChangeTries; ++i) {
        change.begin();
        make(change);
        if (change.commit()) {
          use.done();
          return drop(change.unused());
        }
        std::this_thread::sleep_for(std::chrono::microseconds(random() % (200U << std::min(i, 8))));
      }
      throw StoreError(fmt::format("other clients change {} so often that {} attempts failed: try again",
                                   pool_.address().what(), kChangeTries));
    } catch (...) {
      drop(change.abandoned());
      throw;
    }
  }

 private:
  static bool are_whole(const Lease& lease, std::span<const ByteRange> ranges) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      if (lease.parts[i].size() != length_in(ranges[i], lease.size)) return false;
    }
    return true;
  }
  /// Short parts mean that the value has just been removed, or that the server is faulty.
  static void check_gone(RedisConnection& redis, const std::string& key) {
    if (const auto there = length_of(redis, *redis.ask(ReplyKind::number, {"STRLEN", key})); there > 0)
      redis.fail(fmt::format("the server sent parts of a value of {} bytes with lengths other than requested", there));
  }

  /// Removes values without a record. If that fails, they expire.
  void drop(const std::vector<std::string>& values) noexcept {
    try {
      if (values.empty()) return;
      RedisPool::Use use(pool_);
      for (const auto& key : values) use.connection().ask(ReplyKind::number, {"UNLINK", key});
      use.done();
    } catch (const Error&) {
      return;
    }
  }

  mutable RedisPool pool_;
};

}  // namespace

std::unique_ptr<ByteStore> open_redis(const Place& place, Missing missing) {
  auto store = std::make_unique<RedisStore>(place);
  if (missing == Missing::is_an_error && store->records("").empty())
    throw InputError(fmt::format("there are no documents in {}: `winnow docs add` makes a store there", store->name()));
  return store;
}

}  // namespace winnow::store
