// SPDX-License-Identifier: Apache-2.0
// Heads and layers of documents, whole and compressed.
#include <string>

#include "cache/lanes_file.h"
#include "documents/records.h"
#include "documents/some_document.h"
#include "fuzz/seed_model.h"
#include "fuzz/seeds.h"

namespace {

winnow::store::Bytes layer_of(const winnow::Cache& cache) {
  winnow::MemorySink sink;
  winnow::cache::save(cache.impl().lanes(0), sink);
  return sink.bytes();
}

std::string seed_of(winnow::store::Bytes head, const winnow::store::Bytes& layer) {
  head.resize(head.size() - sizeof(std::uint64_t));  // the fuzzer adds the checksum
  const auto length = static_cast<std::uint32_t>(head.size());
  std::string out(reinterpret_cast<const char*>(&length), sizeof(length));
  out.append(reinterpret_cast<const char*>(head.data()), head.size());
  return out.append(reinterpret_cast<const char*>(layer.data()), layer.size());
}

}  // namespace

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  winnow::Session session(seed_model(), {1, winnow::Precision::automatic, 512});
  for (const char* spec : {"full", "snapkv:window=4", "ada-snapkv:window=4", "h2o"}) {
    winnow::CacheOptions options;
    options.spec = winnow::Spec::parse(spec);
    if (std::string(spec) != "full") options.budget = winnow::Budget::parse("64");
    const auto tokens = some_tokens(230, 1);
    const auto document = document_of(session, tokens, options);
    winnow::documents::StoredHead stored{document.head, {}};
    winnow::documents::SummingSink sink(document.head.saved, 0, nullptr);
    const auto layer = layer_of(document.cache);
    sink.write(layer);
    stored.sums = {sink.sums()};
    write_seed(folder / spec, seed_of(stored.bytes(), layer));
  }
}
