// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

[[noreturn]] void refuse_redis(const Place& place) {
  throw UsageError(
      fmt::format("{} cannot be stored on a Redis server: this winnow was built without hiredis", place.contents));
}

}  // namespace

std::unique_ptr<ByteStore> open_redis(const Place& place, Missing /*missing*/) { refuse_redis(place); }
std::unique_ptr<Values> open_redis_values(const Place& place) { refuse_redis(place); }

}  // namespace winnow::store
