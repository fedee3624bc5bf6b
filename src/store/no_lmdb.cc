// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

std::unique_ptr<ByteStore> open_folder(const Place& place, Missing /*missing*/) {
  throw UsageError(fmt::format("{} cannot be stored in the folder {}: this winnow was built without LMDB",
                               place.contents, place.where));
}

}  // namespace winnow::store
