// SPDX-License-Identifier: Apache-2.0
// Each value is a string that expires if it is not used for a week. A server that is short of memory drops the least
// recently used ones itself, by its maxmemory-policy.
#include <spdlog/fmt/fmt.h>

#include <stdexcept>
#include <utility>
#include <vector>

#include "store/redis_connection.h"
#include "store/stores.h"

namespace winnow::store {

namespace {

constexpr const char* kUnusedSeconds = "604800";
/// The limit of Redis for a string.
constexpr std::size_t kMostBytes = std::size_t{512} << 20U;

/// Values can be computed again, so their owner should not wait long for a server that hangs, not even when it ends.
RedisAddress address_of(const Place& place) {
  auto out = RedisAddress::parse(place);
  out.answer_seconds = 5;
  return out;
}

std::string text_key(const std::string& key) { return "winnow:text:" + key; }

class StringSink : public ByteSink {
 public:
  explicit StringSink(std::size_t size) { bytes_.reserve(size); }
  void write(std::span<const std::byte> bytes) override {
    bytes_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
};

class RedisValues : public Values {
 public:
  explicit RedisValues(const Place& place) : pool_(address_of(place)) {}

  const std::string& name() const override { return pool_.address().name; }

  std::vector<bool> exist(std::span<const std::string> keys) override {
    RedisPool::Use use(pool_);
    for (const auto& key : keys) use.connection().send({"EXISTS", text_key(key)});
    std::vector<bool> out;
    for (std::size_t i = 0; i < keys.size(); ++i) out.push_back(use.connection().next(ReplyKind::number)->integer == 1);
    use.done();
    return out;
  }

  std::optional<Lease> get(const std::string& key, std::size_t size) override {
    RedisPool::Use use(pool_);
    auto& redis = use.connection();
    redis.send({"STRLEN", text_key(key)});
    redis.send({"GETRANGE", text_key(key), "0", std::to_string(size - 1)});
    const auto length = redis.next(ReplyKind::number)->integer;
    const auto reply = std::make_shared<RedisReply>(redis.next(ReplyKind::text));
    use.done();
    if (length <= 0) return std::nullopt;
    Lease out{static_cast<std::size_t>(length), {}, reply};
    const auto bytes = std::as_bytes(std::span(text_of(**reply)));
    if (out.size == size && bytes.size() == size) out.parts.push_back(bytes);
    return out;
  }

  std::size_t room_for_parts() const override { return 0; }
  std::unique_ptr<ValuePart> begin(const std::string& /*key*/, std::size_t /*size*/) override { return nullptr; }
  std::optional<Lease> get_part(const std::string& /*key*/, std::size_t /*size*/, const ByteRange& /*range*/) override {
    throw std::logic_error("Redis has no parts of values");
  }

  void keep(std::span<const NewValue> chain) override {
    RedisPool::Use use(pool_);
    auto& redis = use.connection();
    for (std::size_t i = chain.size(); i-- > 0;) redis.send({"EXPIRE", text_key(chain[i].key), kUnusedSeconds});
    std::vector<bool> exists(chain.size());
    for (std::size_t i = chain.size(); i-- > 0;) exists[i] = redis.next(ReplyKind::number)->integer == 1;
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (exists[i] || chain[i].size > kMostBytes || !chain[i].fill) continue;
      StringSink value(chain[i].size);
      chain[i].fill(value);
      redis.ask(ReplyKind::status, {"SET", text_key(chain[i].key), value.bytes(), "EX", kUnusedSeconds});
    }
    use.done();
  }

  void erase(const std::string& key) override {
    RedisPool::Use use(pool_);
    use.connection().ask(ReplyKind::number, {"UNLINK", text_key(key)});
    use.done();
  }

  std::optional<ValuesHeld> held() const override { return std::nullopt; }

 private:
  RedisPool pool_;
};

}  // namespace

std::unique_ptr<Values> open_redis_values(const Place& place) { return std::make_unique<RedisValues>(place); }

}  // namespace winnow::store
