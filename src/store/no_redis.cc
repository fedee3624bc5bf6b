// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

std::unique_ptr<ByteStore> open_redis(const Place& place, Missing /*missing*/) {
  throw UsageError(
      fmt::format("{} cannot be kept on a Redis server: this winnow was built without hiredis", place.contents));
}

}  // namespace winnow::store
