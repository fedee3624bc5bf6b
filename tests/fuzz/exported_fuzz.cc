// SPDX-License-Identifier: Apache-2.0
// Any bytes as an exported document with valid checksums of the file and of its head: refused with an Error, or
// imported, listed, verified and read.
#include <cstdint>
#include <cstring>
#include <vector>

#include "base/hash.h"
#include "base/log.h"
#include "documents/archive.h"
#include "fuzz/memory_file.h"
#include "support/memory_store.h"
#include "support/reseal.h"
#include "winnow/error.h"

namespace {

constexpr std::size_t kHeader = 32;
constexpr std::size_t kWord = sizeof(std::uint64_t);

/// Recomputes the checksum at the end of the second section, the head.
void reseal_head(std::span<std::byte> file) {
  std::size_t at = kHeader;
  std::uint64_t length = 0;
  for (int section = 0; section < 2; ++section) {
    at += section == 0 ? 0 : length + 2 * kWord;
    if (file.size() < at + kWord) return;
    std::memcpy(&length, file.data() + at, kWord);
    if (length > file.size() - at - kWord) return;
  }
  if (length < kWord) return;
  const auto head = file.subspan(at + kWord, length);
  const std::uint64_t sum = winnow::hash_of(head.first(length - kWord));
  std::memcpy(head.data() + length - kWord, &sum, kWord);
}

void use(const std::string& path) {
  winnow::documents::check_exported(path, "a");
  winnow::documents::Archive archive(winnow::test::open_memory());
  winnow::documents::Label label{"a", {}};
  archive.import_from(path, label);
  archive.list();
  archive.verify({});
  const auto document = archive.open("a");
  for (int layer = 0; layer < document->head().saved.model.layers; ++layer) document->read_all(layer);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  std::string bytes(data, size);
  const auto file = std::as_writable_bytes(std::span(bytes));
  reseal_head(file);
  winnow::test::reseal(file);
  const winnow::test::MemoryFile written(bytes);
  try {
    use(written.path());
  } catch (const winnow::Error&) {
  }
  return 0;
}
