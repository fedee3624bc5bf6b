// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "store/redis_address.h"
#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

namespace {

/// The scheme with `://`; empty: a path.
std::string scheme_of(const std::string& where) {
  constexpr std::string_view kEnd = "://";
  const auto end = where.find(kEnd);
  const auto fits = [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; };
  if (end == 0 || end == std::string::npos || !std::all_of(where.begin(), where.begin() + end, fits)) return "";
  return where.substr(0, end + kEnd.size());
}

enum class Backend : std::uint8_t { folder, redis };

Backend backend_of(const Place& place) {
  if (place.where.empty())
    throw UsageError(
        fmt::format("the name of the store for {} is empty: give a folder or {}", place.contents, kRedisForm));
  const auto scheme = scheme_of(place.where);
  if (scheme == kPlainScheme || scheme == kTlsScheme) return Backend::redis;
  if (!scheme.empty())
    throw UsageError(
        fmt::format("{} cannot be stored at {}…: give a folder or {}", place.contents, scheme, kRedisForm));
  return Backend::folder;
}

}  // namespace

std::unique_ptr<ByteStore> open(const Place& place, Missing missing) {
  return backend_of(place) == Backend::redis ? open_redis(place, missing) : open_folder(place, missing);
}

bool is_folder(const Place& place) { return backend_of(place) == Backend::folder; }

std::unique_ptr<Values> open_values(const Place& place, std::size_t most) {
  return backend_of(place) == Backend::redis ? open_redis_values(place) : open_value_folder(place, most);
}

std::string default_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string data = variable("XDG_DATA_HOME");
  if (data.empty()) data = variable("HOME").empty() ? "" : variable("HOME") + "/.local/share";
  if (data.empty())
    throw UsageError(
        fmt::format("there is no folder for documents, because HOME is not set: give --store DIR or {}", kRedisForm));
  return data + "/winnow/documents";
}

}  // namespace winnow::store
