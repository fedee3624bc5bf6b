// SPDX-License-Identifier: Apache-2.0
// An LMDB file of a store in which some bytes of tree pages are changed: refused with an InputError, or usable without
// crashes. Four input bytes make one change: the index of an offset, and the mask for its byte.
#include <cstdlib>
#include <exception>
#include <vector>

#include "store/damaged_lmdb.h"
#include "support/damage.h"
#include "support/temp.h"

namespace {

using winnow::test::StoreToDamage;

StoreToDamage make_store() {
  static const winnow::test::TempFolder folder(winnow::test::memory_folder());
  winnow::test::make_some_store(folder / "store");
  return StoreToDamage(folder / "store");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  static const StoreToDamage store = make_store();
  static const std::vector<std::size_t> places = store.places(1);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(data);
  std::vector<winnow::test::Flip> flips;
  for (std::size_t i = 0; i + 4 <= size; i += 4) {
    const std::size_t place = bytes[i] | bytes[i + 1] << 8U | bytes[i + 2] << 16U;
    flips.push_back({places[place % places.size()], bytes[i + 3]});
  }
  store.damage(flips);
  try {
    winnow::test::use_some_store(store.folder());
  } catch (const std::exception&) {
    std::abort();
  }
  return 0;
}
