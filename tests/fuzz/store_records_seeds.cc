// SPDX-License-Identifier: Apache-2.0
// Files of records: small and large ones, and steps that add and erase values.
#include <string>
#include <vector>

#include "fuzz/seeds.h"
#include "store/record_file.h"
#include "store/some_bytes.h"

namespace {

using namespace winnow::store;

/// The seed for a file: the fuzzer adds the header and the checksum.
std::string seed_of(const std::vector<FiledRecord>& records, const StepValues& step) {
  winnow::MemorySink to;
  RecordFile::write(to, records, step);
  const std::string file = winnow::test::text_of(to.bytes());
  const std::string length = file.substr(8, 4);
  std::size_t contents = 0;
  for (const auto& record : records) contents += record.bytes.size();
  const std::size_t index = file.size() - contents - 8 - 16;
  return length + file.substr(16, index) + file.substr(file.size() - contents);
}

}  // namespace

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  const auto bytes = bytes_of("some bytes");
  write_seed(folder / "empty", seed_of({}, {}));
  write_seed(folder / "small", seed_of({{"c/1", bytes}, {"format", {}}, {"n/a", bytes}}, {}));
  write_seed(folder / "large", seed_of({{"n/a", {}, "0123456789abcdefrecord"}, {"n/b", bytes}}, {}));
  write_seed(folder / "step", seed_of({{"n/a", bytes}}, {{"0000", "0001"}, {"0002"}}));
}
