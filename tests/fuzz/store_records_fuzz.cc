// SPDX-License-Identifier: Apache-2.0
// Any bytes as the file of records of a store in a folder, with a valid checksum: refused with an InputError, or read;
// then it can be written again. The first four bytes are the length of the index.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/hash.h"
#include "store/record_file.h"
#include "winnow/error.h"

namespace {

using winnow::MemorySink;
using winnow::store::RecordFile;

/// The file with this index and these contents.
winnow::store::Bytes sealed(std::span<const std::byte> index, std::span<const std::byte> contents) {
  MemorySink to;
  to.write(std::as_bytes(std::span("winnowrc", 8)));
  winnow::put(to, static_cast<std::uint64_t>(index.size()));
  to.write(index);
  winnow::put(to, winnow::hash_of(to.bytes()));
  to.write(contents);
  return to.bytes();
}

void read(const winnow::store::Bytes& file) {
  const RecordFile records(file, "the records");
  for (const auto& record : records.beginning_with("")) {
    if (records.find(record.key) != &record) std::abort();
  }
  MemorySink again;
  RecordFile::write(again, records.beginning_with(""), records.last_step());
  if (again.bytes() != file) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  std::uint32_t length = 0;
  if (size < sizeof(length)) return 0;
  std::memcpy(&length, data, sizeof(length));
  const auto rest = std::as_bytes(std::span(data, size)).subspan(sizeof(length));
  if (length > rest.size()) return 0;
  try {
    read(sealed(rest.first(length), rest.subspan(length)));
  } catch (const winnow::InputError&) {
  }
  try {
    const RecordFile unsealed({rest.begin(), rest.end()}, "the records");
  } catch (const winnow::InputError&) {
  }
  return 0;
}
