// SPDX-License-Identifier: Apache-2.0
#include "base/byte_stream.h"

#include <spdlog/fmt/fmt.h>

#include <cstring>

#include "winnow/error.h"

namespace winnow {

void put(ByteSink& to, std::string_view text) {
  put(to, static_cast<std::uint32_t>(text.size()));
  put(to, std::span<const char>(text));
}

void MemorySink::write(std::span<const std::byte> bytes) { bytes_.insert(bytes_.end(), bytes.begin(), bytes.end()); }

void MemorySource::read(std::size_t at, std::span<std::byte> out) const {
  if (!out.empty()) std::memcpy(out.data(), bytes_.data() + at, out.size());
}

void ByteCursor::need(std::size_t bytes, std::string_view what) const {
  if (bytes > left()) fail(fmt::format("{} at byte {} needs {} bytes, but only {} are left", what, at_, bytes, left()));
}

void ByteCursor::read(std::span<std::byte> out, std::string_view what) {
  need(out.size(), what);
  from_->read(at_, out);
  at_ += out.size();
}

ByteCursor ByteCursor::part(std::size_t bytes, std::string_view what) {
  need(bytes, what);
  const ByteCursor out(*from_, at_, at_ + bytes);
  at_ += bytes;
  return out;
}

std::string ByteCursor::text(std::string_view what) {
  const auto length = take<std::uint32_t>(what);
  need(length, what);
  std::string out(length, '\0');
  read(std::span<char>(out), what);
  return out;
}

void ByteCursor::finish(std::string_view what) const {
  if (left() > 0) fail(fmt::format("{} bytes are left after {}", left(), what));
}

void ByteCursor::fail(const std::string& why) const {
  throw InputError(fmt::format("{} is damaged: {}", from_->name(), why));
}

}  // namespace winnow
