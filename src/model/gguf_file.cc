// SPDX-License-Identifier: Apache-2.0
#include "model/gguf_file.h"

#include <spdlog/fmt/fmt.h>

#include "base/as_size.h"
#include "base/printable.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

std::optional<std::int64_t> integer_at(gguf_type type, const void* data, std::size_t index) {
  const auto at = [&](auto example) {
    return static_cast<std::int64_t>(static_cast<const decltype(example)*>(data)[index]);
  };
  switch (type) {
    case GGUF_TYPE_UINT8:
    case GGUF_TYPE_BOOL:  // a byte
      return at(std::uint8_t{});
    case GGUF_TYPE_INT8:
      return at(std::int8_t{});
    case GGUF_TYPE_UINT16:
      return at(std::uint16_t{});
    case GGUF_TYPE_INT16:
      return at(std::int16_t{});
    case GGUF_TYPE_UINT32:
      return at(std::uint32_t{});
    case GGUF_TYPE_INT32:
      return at(std::int32_t{});
    case GGUF_TYPE_UINT64:
      return at(std::uint64_t{});
    case GGUF_TYPE_INT64:
      return at(std::int64_t{});
    default:
      return std::nullopt;
  }
}

/// True if a key is 0, false or empty.
bool is_off(const gguf_context* gguf, std::int64_t id) {
  const auto type = gguf_get_kv_type(gguf, id);
  if (type == GGUF_TYPE_ARRAY) return gguf_get_arr_n(gguf, id) == 0;
  if (type == GGUF_TYPE_STRING) return *gguf_get_val_str(gguf, id) == '\0';
  if (type == GGUF_TYPE_BOOL) return !gguf_get_val_bool(gguf, id);
  if (type == GGUF_TYPE_FLOAT32) return gguf_get_val_f32(gguf, id) == 0;
  if (type == GGUF_TYPE_FLOAT64) return gguf_get_val_f64(gguf, id) == 0;
  return integer_at(type, gguf_get_val_data(gguf, id), 0) == 0;
}

}  // namespace

std::int64_t GgufKeys::find(const std::string& key) const {
  asked_.insert(key);
  return gguf_find_key(gguf_, key.c_str());
}

std::vector<std::string> GgufKeys::unasked(const std::string& prefix) const {
  std::vector<std::string> out;
  for (std::int64_t id = 0; id < gguf_get_n_kv(gguf_); ++id) {
    const std::string key = gguf_get_key(gguf_, id);
    if (key.starts_with(prefix) && !asked_.contains(key) && !is_off(gguf_, id)) out.push_back(key);
  }
  return out;
}

void GgufKeys::wrong_type(const std::string& key, std::int64_t id, const char* expected) const {
  throw ModelError(fmt::format("{}: key {} is of type {}, expected {}", path_, brief(key),
                               gguf_type_name(gguf_get_kv_type(gguf_, id)), expected));
}

std::optional<std::string> GgufKeys::text(const std::string& key) const {
  const auto id = find(key);
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(gguf_, id) != GGUF_TYPE_STRING) wrong_type(key, id, "a string");
  return gguf_get_val_str(gguf_, id);
}

std::optional<bool> GgufKeys::flag(const std::string& key) const {
  const auto id = find(key);
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(gguf_, id) != GGUF_TYPE_BOOL) wrong_type(key, id, "true or false");
  return gguf_get_val_bool(gguf_, id);
}

std::optional<std::int64_t> GgufKeys::integer(const std::string& key) const {
  const auto id = find(key);
  if (id < 0) return std::nullopt;
  const auto type = gguf_get_kv_type(gguf_, id);
  if (type == GGUF_TYPE_STRING || type == GGUF_TYPE_ARRAY) wrong_type(key, id, "an integer");
  const auto value = integer_at(type, gguf_get_val_data(gguf_, id), 0);
  if (!value) wrong_type(key, id, "an integer");
  return value;
}

std::optional<double> GgufKeys::number(const std::string& key) const {
  const auto id = find(key);
  if (id < 0) return std::nullopt;
  switch (gguf_get_kv_type(gguf_, id)) {
    case GGUF_TYPE_FLOAT32:
      return static_cast<double>(gguf_get_val_f32(gguf_, id));
    case GGUF_TYPE_FLOAT64:
      return gguf_get_val_f64(gguf_, id);
    default:
      wrong_type(key, id, "a number");
  }
}

std::optional<double> GgufKeys::number(const std::string& key, double least, double most) const {
  const auto value = number(key);
  if (value && !(*value >= least && *value <= most))
    throw ModelError(fmt::format("{}: key {} is {:g}, expected {:g} to {:g}", path_, brief(key), *value, least, most));
  return value;
}

std::optional<std::int64_t> GgufKeys::array_length(const std::string& key) const {
  const auto id = find(key);
  if (id < 0) return std::nullopt;
  if (gguf_get_kv_type(gguf_, id) != GGUF_TYPE_ARRAY) wrong_type(key, id, "an array");
  return static_cast<std::int64_t>(gguf_get_arr_n(gguf_, id));
}

std::optional<int> GgufKeys::integer(const std::string& key, int least, int most) const {
  const auto value = integer(key);
  if (!value) return std::nullopt;
  if (*value < least || *value > most)
    throw ModelError(fmt::format("{}: key {} is {}, expected {} to {}", path_, brief(key), *value, least, most));
  return static_cast<int>(*value);
}

int GgufKeys::required(const std::string& key, int least, int most) const {
  const auto value = integer(key, least, most);
  if (!value) throw ModelError(fmt::format("{}: key {} is missing", path_, brief(key)));
  return *value;
}

bool GgufKeys::is_array(const std::string& key) const {
  const auto id = find(key);
  return id >= 0 && gguf_get_kv_type(gguf_, id) == GGUF_TYPE_ARRAY;
}

std::int64_t GgufKeys::array_of_layers(const std::string& key, int layers) const {
  const auto id = find(key);
  if (id < 0 || gguf_get_kv_type(gguf_, id) != GGUF_TYPE_ARRAY) return -1;
  const auto count = gguf_get_arr_n(gguf_, id);
  if (count != as_size(layers))
    throw ModelError(fmt::format("{}: key {} has {} values for {} layers", path_, brief(key), count, layers));
  return id;
}

std::optional<std::vector<int>> GgufKeys::integers(const std::string& key, int layers, int least, int most) const {
  const auto id = array_of_layers(key, layers);
  if (id < 0) {
    const auto one = integer(key, least, most);
    return one ? std::optional(std::vector<int>(layers, *one)) : std::nullopt;
  }
  const auto type = gguf_get_arr_type(gguf_, id);
  if (type == GGUF_TYPE_STRING) wrong_type(key, id, "integers");
  std::vector<int> out;
  for (std::size_t layer = 0; layer < as_size(layers); ++layer) {
    const auto value = integer_at(type, gguf_get_arr_data(gguf_, id), layer);
    if (!value) wrong_type(key, id, "integers");
    if (*value < least || *value > most)
      throw ModelError(fmt::format("{}: key {} is {} in layer {}, expected {} to {}", path_, brief(key), *value, layer,
                                   least, most));
    out.push_back(static_cast<int>(*value));
  }
  return out;
}

std::optional<std::vector<double>> GgufKeys::numbers(const std::string& key, int layers, double least,
                                                     double most) const {
  const auto id = array_of_layers(key, layers);
  if (id < 0) {
    const auto one = number(key, least, most);
    return one ? std::optional(std::vector<double>(layers, *one)) : std::nullopt;
  }
  if (gguf_get_arr_type(gguf_, id) != GGUF_TYPE_FLOAT32) wrong_type(key, id, "numbers");
  const auto* const values = static_cast<const float*>(gguf_get_arr_data(gguf_, id));
  const std::vector<double> out(values, values + layers);
  for (std::size_t layer = 0; layer < out.size(); ++layer) {
    if (!(out[layer] >= least && out[layer] <= most))
      throw ModelError(fmt::format("{}: key {} is {:g} in layer {}, expected {:g} to {:g}", path_, brief(key),
                                   out[layer], layer, least, most));
  }
  return out;
}

}  // namespace winnow::model
