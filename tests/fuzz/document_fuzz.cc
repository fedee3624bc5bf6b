// SPDX-License-Identifier: Apache-2.0
// Any bytes as the head of a stored document and one of its layers, with valid checksums: refused with an InputError,
// or read; then all ranges found in the layer must lie within it. The first four bytes are the head's length.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>

#include "base/log.h"
#include "documents/records.h"
#include "winnow/error.h"

namespace {

using winnow::documents::StoredHead;

void seal(winnow::store::Bytes& head) {
  const std::uint64_t sum = winnow::hash_of(head);
  const auto bytes = std::as_bytes(std::span(&sum, 1));
  head.insert(head.end(), bytes.begin(), bytes.end());
}

void read_layer(const StoredHead& stored, std::span<const std::byte> layer) {
  winnow::documents::SummingSink sink(stored.head.saved, 0, nullptr);
  sink.write(layer);
  auto sums = sink.sums();
  winnow::documents::check_layer(stored.head.saved, 0, layer, sums, "the layer");
  if (winnow::documents::is_plain(stored.head.saved)) return;
  for (const auto& lane : winnow::documents::read_kept_lanes(stored.head.saved, 0, layer, "the layer")) {
    if (lane.keys.end > layer.size() || lane.values.end > layer.size()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  std::uint32_t length = 0;
  if (size < sizeof(length)) return 0;
  std::memcpy(&length, data, sizeof(length));
  const auto rest = std::as_bytes(std::span(data, size)).subspan(sizeof(length));
  if (length > rest.size()) return 0;
  winnow::store::Bytes head(rest.begin(), rest.begin() + length);
  seal(head);
  try {
    read_layer(StoredHead::read(head, "the head"), rest.subspan(length));
  } catch (const winnow::InputError&) {
  }
  return 0;
}
