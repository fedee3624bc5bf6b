// SPDX-License-Identifier: Apache-2.0
// winnow_archive_bench FOLDER DOCUMENTS LAYERS BYTES: the time of adding DOCUMENTS documents of LAYERS values of BYTES
// bytes to a store, of opening and listing it, and of adding, reading and removing one more. FOLDER must not exist.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "base/hash.h"
#include "documents/archive.h"
#include "program.h"
#include "times.h"

namespace {

using winnow::bench::seconds_of;
using winnow::bench::Times;
using winnow::documents::Archive;
using winnow::documents::NewContent;

constexpr int kRounds = 11;

void print(const char* what, double seconds) { fmt::print("{:<32} {:10.2f} ms\n", what, 1e3 * seconds); }

/// Contents that are stored, but are no keys and values.
struct Contents {
  int layers = 0;
  winnow::store::Bytes layer;

  NewContent content(int number) const {
    NewContent out;
    out.id = fmt::format("{:032x}", number);
    out.record = {winnow::documents::new_number(),
                  "full",
                  "",
                  "f16",
                  "a model",
                  "llama",
                  1,
                  layers,
                  1000,
                  layer.size() * static_cast<std::size_t>(layers),
                  1,
                  1};
    out.layer_bytes.assign(static_cast<std::size_t>(layers), layer.size());
    out.write_layer = [this](int, winnow::ByteSink& to) { to.write(layer); };
    out.head_bytes = layer.size();
    out.head = [this] { return layer; };
    return out;
  }
};

std::string name_of(int number) { return fmt::format("document {}", number); }
std::unique_ptr<winnow::store::ByteStore> open(const std::string& folder) {
  return winnow::store::open({folder}, winnow::store::Missing::is_created);
}

void run(const std::string& folder, int documents, const Contents& contents) {
  Times add;
  {
    Archive archive(open(folder));
    for (int i = 0; i < documents; ++i)
      add.add(seconds_of([&] { archive.put({name_of(i), {}}, contents.content(i)); }));
  }
  Times opened, listed, added, read, removed;
  std::uint64_t sum = 0;
  for (int i = 0; i < kRounds; ++i) {
    std::shared_ptr<winnow::store::ByteStore> bytes;
    opened.add(seconds_of([&] { bytes = open(folder); }));
    Archive archive(bytes);
    listed.add(seconds_of([&] {
      if (archive.list().size() != static_cast<std::size_t>(documents)) std::abort();
    }));
    const auto content = contents.content(documents);
    added.add(seconds_of([&] { archive.put({"another", {}}, content); }));
    read.add(seconds_of([&] {
      for (int layer = 0; layer < contents.layers; ++layer) {
        const auto lease = bytes->value(content.record.layer_key(layer), std::span(&winnow::store::kWhole, 1));
        sum += winnow::hash_of(lease->parts.front());
      }
    }));
    const std::string another = "another";
    removed.add(seconds_of([&] { archive.remove(std::span(&another, 1)); }));
  }
  fmt::print("{} documents of {} values of {} bytes; medians ({:x})\n", documents, contents.layers,
             contents.layer.size(), sum);
  print("added one of all", add.median());
  print("opened", opened.median());
  print("listed all", listed.median());
  print("added another", added.median());
  print("read and checked it", read.median());
  print("removed it", removed.median());
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("opening, listing and changing a store of many documents");
  std::string folder;
  int documents = 0;
  int layers = 0;
  std::size_t bytes = 0;
  app.add_option("FOLDER", folder, "must not exist")->required();
  app.add_option("DOCUMENTS", documents)->required();
  app.add_option("LAYERS", layers, "values of a document")->required();
  app.add_option("BYTES", bytes, "of a value")->required();
  return winnow::bench::run_program(app, argc, argv, [&] {
    run(folder, documents, {layers, winnow::store::Bytes(bytes, std::byte{42})});
  });
}
