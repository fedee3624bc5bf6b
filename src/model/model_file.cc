// SPDX-License-Identifier: Apache-2.0
#include "model/model_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "base/as_size.h"
#include "device/backend_log.h"
#include "model/gguf_check.h"
#include "winnow/error.h"

namespace winnow::model {

namespace {

std::size_t read_copy(void* copy, void* out, std::uint64_t at, std::size_t wanted) {
  const auto& bytes = *static_cast<const std::vector<std::byte>*>(copy);
  if (at >= bytes.size()) return 0;
  const std::size_t n = std::min(wanted, bytes.size() - as_size(at));
  std::memcpy(out, bytes.data() + at, n);
  return n;
}

using PartCheck = void (*)(const GgufHeader& header, const std::string& path);

ModelPart open_part(const std::string& path, PartCheck check) {
  ModelPart part{path, std::make_shared<const MappedFile>(path), nullptr};
  const std::span file(part.mapped->data(), part.mapped->size());
  const auto bytes = file.first(read_gguf_header(file, path).bytes);
  std::vector<std::byte> copy(bytes.begin(), bytes.end());
  const auto header = read_gguf_header(copy, path);
  check_gguf(header, file.size(), path);
  check(header, path);
  constexpr std::size_t kAnyChunk = 0;
  part.gguf.reset(gguf_init_from_callback(read_copy, &copy, kAnyChunk, file.size(), {true, nullptr}));
  if (part.gguf == nullptr)
    throw ModelError(fmt::format("{}: not a GGUF file that ggml can read (-v shows why)", path));
  return part;
}

/// Ending of a part's name, `number` from 0.
std::string ending_of(std::int64_t number, std::int64_t count) {
  return fmt::format("-{:05}-of-{:05}.gguf", number + 1, count);
}

/// Path of another part; empty if a part's name does not end in its number.
std::string beside(const std::string& path, std::int64_t own, std::int64_t other, std::int64_t count) {
  const std::string ending = ending_of(own, count);
  if (!path.ends_with(ending)) return "";
  return path.substr(0, path.size() - ending.size()) + ending_of(other, count);
}

constexpr const char* kNumber = "split.no";
constexpr const char* kCount = "split.count";
constexpr const char* kTensors = "split.tensors.count";

/// Checks that a file is a model, or its first part under a name from which the others can be found.
void check_first(const GgufHeader& header, const std::string& path) {
  const auto number = header.integer(kNumber).value_or(0);
  const auto count = header.integer(kCount).value_or(1);
  constexpr std::int64_t kMost = std::numeric_limits<std::uint16_t>::max();  // the file's number has as many bits
  if (count < 0 || count > kMost || (count > 1 && (number < 0 || number >= count)))
    throw ModelError(fmt::format("{}: {} is {} and {} is {}, which is not possible for a part of a model", path,
                                 kNumber, number, kCount, count));
  if (count > 1 && number != 0) {
    const std::string first = beside(path, number, 0, count);
    throw ModelError(fmt::format("{} is part {} of {} of a model: give the first part{}{}", path, number + 1, count,
                                 first.empty() ? "" : ", ", first));
  }
  if (count > 1 && !path.ends_with(ending_of(0, count))) {
    throw ModelError(
        fmt::format("{} is part 1 of {} of a model: its name must end with {}, so that the other parts can be found",
                    path, count, ending_of(0, count)));
  }
  check_model_keys(header, path);
}

/// Checks that each part has the number in its name, and that all have together as many tensors as the first part says.
void check_together(const std::vector<ModelPart>& parts) {
  const GgufKeys of_first(parts.front().gguf.get(), parts.front().path);
  const auto count = std::ssize(parts);
  const auto tensors = of_first.required(kTensors, 0, std::numeric_limits<int>::max());
  std::map<std::string, const ModelPart*> owners;
  for (std::int64_t i = 0; i < count; ++i) {
    const auto& part = parts[as_size(i)];
    const GgufKeys keys(part.gguf.get(), part.path);
    for (const auto& [key, expected] : {std::pair(kNumber, i), {kCount, count}, {kTensors, std::int64_t{tensors}}}) {
      const auto found = keys.integer(key);
      if (found != expected) {
        throw ModelError(fmt::format("{}: {} is {}, expected {}: it does not belong to {}", part.path, key,
                                     found ? std::to_string(*found) : "missing", expected, of_first.path()));
      }
    }
    for (std::int64_t id = 0; id < gguf_get_n_tensors(part.gguf.get()); ++id) {
      const auto [at, is_new] = owners.emplace(gguf_get_tensor_name(part.gguf.get(), id), &part);
      if (!is_new)
        throw ModelError(fmt::format("tensor {} is both in {} and in {}", at->first, at->second->path, part.path));
    }
  }
  if (std::ssize(owners) != tensors) {
    throw ModelError(fmt::format("{}: the {} parts of the model have {} tensors, but {} is {}", of_first.path(), count,
                                 owners.size(), kTensors, tensors));
  }
}

}  // namespace

ModelFile::ModelFile(const std::string& path) {
  device::forward_backend_log();
  parts_.push_back(open_part(path, check_first));
  const auto count = GgufKeys(gguf(), path).integer(kCount).value_or(1);
  for (std::int64_t i = 1; i < count; ++i)
    parts_.push_back(open_part(beside(path, 0, i, count), [](const GgufHeader&, const std::string&) {}));
  if (count > 1) check_together(parts_);
}

}  // namespace winnow::model
