// SPDX-License-Identifier: Apache-2.0
#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

std::unique_ptr<ByteStore> open_redis(const std::string& /*url*/, Missing /*missing*/) {
  throw UsageError("documents cannot be kept on a Redis server: this winnow was built without hiredis");
}

}  // namespace winnow::store
