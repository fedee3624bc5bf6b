// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "store/byte_store.h"
#include "store/values.h"

namespace winnow::store {

/// A store in a folder, whose values are files.
std::unique_ptr<ByteStore> open_folder(const Place& place, Missing missing);

/// A store on a Redis server, which machines may share.
std::unique_ptr<ByteStore> open_redis(const Place& place, Missing missing);

/// Values that may be dropped, in files of a folder.
std::unique_ptr<Values> open_value_folder(const Place& place, std::size_t most);

/// The same on a Redis server.
std::unique_ptr<Values> open_redis_values(const Place& place);

}  // namespace winnow::store
