// document_seeds FOLDER: heads and layers of documents, whole and compressed, to start from.
#include <cstdio>
#include <fstream>
#include <string>

#include "fuzz/seed_model.h"
#include "multi/records.h"
#include "multi/some_document.h"

namespace {

winnow::store::Bytes layer_of(const winnow::Cache& cache) {
  winnow::MemorySink sink;
  cache.impl().lanes.layer(0).save(sink, 0);
  return sink.bytes();
}

void write(const std::string& path, winnow::store::Bytes head, const winnow::store::Bytes& layer) {
  head.resize(head.size() - sizeof(std::uint64_t));  // the fuzzer adds the checksum
  const auto length = static_cast<std::uint32_t>(head.size());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(&length), sizeof(length));
  head.insert(head.end(), layer.begin(), layer.end());
  file.write(reinterpret_cast<const char*>(head.data()), static_cast<std::streamsize>(head.size()));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: %s FOLDER\n", argv[0]);
    return 2;
  }
  winnow::Session session(winnow::test::seed_model(), {1, winnow::Precision::automatic, 512});
  for (const char* spec : {"full", "snapkv:window=4", "ada-snapkv:window=4", "h2o"}) {
    winnow::CacheOptions options;
    options.spec = winnow::Spec::parse(spec);
    if (std::string(spec) != "full") options.budget = winnow::Budget::parse("64");
    const auto tokens = winnow::test::some_tokens(230, 1);
    const auto document = winnow::test::document_of(session, tokens, options);
    winnow::multi::StoredHead stored{document.head, {}};
    winnow::multi::SummingSink sink(document.head.saved, 0, nullptr);
    const auto layer = layer_of(document.cache);
    sink.write(layer);
    stored.sums = {sink.sums()};
    std::string name = spec;
    for (char& c : name) c = c == ':' || c == '=' ? '-' : c;
    write(std::string(argv[1]) + "/" + name, stored.bytes(), layer);
  }
}
