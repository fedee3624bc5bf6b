// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

std::unique_ptr<ByteStore> open_folder(const std::string& folder, Missing /*missing*/) {
  throw UsageError(fmt::format("documents cannot be kept in {}: this winnow was built without LMDB", folder));
}

}  // namespace winnow::store
