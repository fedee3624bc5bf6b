// SPDX-License-Identifier: Apache-2.0
#include "cache/sections.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/as_size.h"
#include "base/hash.h"
#include "winnow/error.h"

namespace winnow::cache {

namespace {

/// Header of a file. No padding: members are at multiples of their size.
struct Header {
  std::array<char, 8> magic;
  std::uint32_t version;
  std::uint32_t sections;
  std::uint64_t file_bytes;
  std::uint64_t hash;  ///< of all fields before it
};
static_assert(sizeof(Header) == 32);

constexpr std::size_t kAround = 2 * sizeof(std::uint64_t);  ///< a section's length and checksum

std::span<const std::byte> bytes_of(const Header& header) { return std::as_bytes(std::span(&header, 1)); }
std::uint64_t hash_of_header(const Header& header) { return hash_of(bytes_of(header).first(offsetof(Header, hash))); }

/// A section's checksum covers its index and its length, so that sections cannot change places.
Hasher hasher_of(std::size_t index, std::uint64_t length) {
  Hasher hasher(index);
  hasher.add(std::as_bytes(std::span(&length, 1)));
  return hasher;
}

/// Forwards bytes and hashes them.
class HashingSink : public ByteSink {
 public:
  HashingSink(ByteSink& to, Hasher& hasher) : to_(to), hasher_(hasher) {}
  void write(std::span<const std::byte> bytes) override {
    hasher_.add(bytes);
    to_.write(bytes);
    written_ += bytes.size();
  }
  std::size_t written() const { return written_; }

 private:
  ByteSink& to_;
  Hasher& hasher_;
  std::size_t written_ = 0;
};

}  // namespace

SectionWriter::SectionWriter(ByteSink& to, const FileFormat& format, std::vector<std::size_t> lengths)
    : to_(to), lengths_(std::move(lengths)) {
  Header header{format.magic, format.version, static_cast<std::uint32_t>(lengths_.size()), sizeof(Header), 0};
  for (const auto length : lengths_) header.file_bytes += kAround + length;
  header.hash = hash_of_header(header);
  to_.write(bytes_of(header));
}

void SectionWriter::section(const std::function<void(ByteSink&)>& fill) {
  const std::uint64_t length = lengths_.at(next_);
  Hasher hasher = hasher_of(next_, length);
  put(to_, length);
  HashingSink sink(to_, hasher);
  fill(sink);
  if (sink.written() != length)
    throw std::logic_error(
        fmt::format("section {} has {} bytes, but {} were announced", next_, sink.written(), length));
  put(to_, hasher.value());
  ++next_;
}

SectionReader::SectionReader(const ByteSource& from, const FileFormat& format) : from_(from) {
  check_header(format);
  Header header{};
  from.read(0, std::as_writable_bytes(std::span(&header, 1)));
  ByteCursor rest(from, sizeof(Header), from.size());
  std::size_t at = sizeof(Header);
  for (std::uint32_t i = 0; i < header.sections; ++i) {
    const auto length = rest.take<std::uint64_t>("a section's length");
    if (rest.left() < sizeof(std::uint64_t) || length > rest.left() - sizeof(std::uint64_t)) {
      rest.fail(fmt::format("section {} of {} claims {} bytes, but {} are left", i + 1, header.sections, length,
                            rest.left()));
    }
    sections_.push_back({at + sizeof(std::uint64_t), as_size(length)});
    at += kAround + as_size(length);
    rest = ByteCursor(from, at, from.size());
  }
  rest.finish("the last section");
}

void SectionReader::check_header(const FileFormat& format) const {
  const auto fail = [&](const std::string& why) { throw InputError(fmt::format("{} {}", from_.name(), why)); };
  if (from_.size() == 0) fail(fmt::format("is empty (0 bytes), expected {}", format.noun));
  Header header{};
  const auto bytes = std::as_writable_bytes(std::span(&header, 1)).first(std::min(sizeof(Header), from_.size()));
  from_.read(0, bytes);
  if (std::memcmp(&header, format.magic.data(), std::min(format.magic.size(), bytes.size())) != 0)
    fail(fmt::format("is not {}", format.noun));
  if (bytes.size() < sizeof(Header))
    fail(fmt::format("is truncated: it has {} bytes, but its header alone takes {}", bytes.size(), sizeof(Header)));
  if (header.version != format.version)
    fail(fmt::format("has format version {}, but this winnow reads version {}", header.version, format.version));
  if (header.hash != hash_of_header(header)) {
    fail(fmt::format("is damaged: the checksum of its header is {:016x}, expected {:016x}", hash_of_header(header),
                     header.hash));
  }
  if (header.file_bytes > from_.size())
    fail(fmt::format("is truncated: it has {} of {} bytes", from_.size(), header.file_bytes));
  if (header.file_bytes < from_.size())
    fail(fmt::format("is damaged: it has {} bytes, but its header says {}", from_.size(), header.file_bytes));
}

void SectionReader::verify(int index, const std::string& what) const {
  const Section& section = sections_.at(as_size(index));
  Hasher hasher = hasher_of(as_size(index), section.length);
  constexpr std::size_t kBufferBytes = std::size_t{1} << 20U;
  std::vector<std::byte> buffer(std::min(kBufferBytes, section.length));
  ByteCursor contents = this->section(index);
  while (contents.left() > 0) {
    const auto part = std::span(buffer).first(std::min(kBufferBytes, contents.left()));
    contents.read(part, what);
    hasher.add(part);
  }
  std::uint64_t expected = 0;
  from_.read(section.at + section.length, std::as_writable_bytes(std::span(&expected, 1)));
  if (hasher.value() != expected)
    contents.fail(fmt::format("the checksum of {} is {:016x}, expected {:016x}", what, hasher.value(), expected));
}

ByteCursor SectionReader::section(int index) const {
  const Section& section = sections_.at(as_size(index));
  return {from_, section.at, section.at + section.length};
}

}  // namespace winnow::cache
