// SPDX-License-Identifier: Apache-2.0
#include "model/model_file.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "base/as_size.h"
#include "model/backend_log.h"
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

GgufPtr checked_gguf(std::span<const std::byte> file, const std::string& path) {
  const auto header = file.first(read_gguf_header(file, path).bytes);
  std::vector<std::byte> copy(header.begin(), header.end());
  check_gguf(read_gguf_header(copy, path), file.size(), path);
  constexpr std::size_t kAnyChunk = 0;
  GgufPtr gguf(gguf_init_from_callback(read_copy, &copy, kAnyChunk, file.size(), {true, nullptr}));
  if (gguf == nullptr) throw ModelError(fmt::format("{}: not a GGUF file that ggml can read (-v shows why)", path));
  return gguf;
}

}  // namespace

ModelFile::ModelFile(const std::string& path) : path_(path), mapped_(std::make_shared<const MappedFile>(path)) {
  forward_backend_log();
  gguf_ = checked_gguf({mapped_->data(), mapped_->size()}, path);
}

}  // namespace winnow::model
