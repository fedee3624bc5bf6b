#include <cstdlib>

#include "store/stores.h"
#include "winnow/error.h"

namespace winnow::store {

std::unique_ptr<ByteStore> open(const std::string& where, Missing missing) {
  if (where.empty())
    throw UsageError("the place of the documents is empty: give a folder or redis://HOST[:PORT][/DATABASE]");
  return where.starts_with(kRedisScheme) ? open_redis(where, missing) : open_folder(where, missing);
}

std::string default_folder() {
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string(value == nullptr ? "" : value);
  };
  std::string data = variable("XDG_DATA_HOME");
  if (data.empty()) data = variable("HOME").empty() ? "" : variable("HOME") + "/.local/share";
  if (data.empty())
    throw UsageError("there is no HOME to keep documents in: give --store DIR or redis://HOST[:PORT][/DATABASE]");
  return data + "/winnow/documents";
}

}  // namespace winnow::store
