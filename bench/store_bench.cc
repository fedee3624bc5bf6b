// SPDX-License-Identifier: Apache-2.0
// winnow_store_bench WHERE NAME: the speed of reading a document's blocks from a store, beside a copy of the same bytes
// in memory. Reads every second block of each layer twice: first with its checksum, then only copying its rows, which
// touches them as attention does.
#include <spdlog/fmt/fmt.h>

#include <cstring>
#include <string>
#include <vector>

#include "documents/archive.h"
#include "program.h"
#include "times.h"

namespace {

using winnow::bench::seconds_of;
using winnow::bench::Times;
using winnow::documents::Archive;
using winnow::documents::Document;
using winnow::documents::TokenRange;

constexpr int kRounds = 50;

std::vector<TokenRange> every_second_block(const Document& document) {
  const auto layout = document.head().layout();
  std::vector<TokenRange> out;
  for (int block = 0; block < layout.blocks(); block += 2) out.push_back({layout.begin(block), layout.end(block)});
  return out;
}

void read(const Document& document, const std::vector<TokenRange>& blocks) {
  for (int layer = 0; layer < document.head().saved.model.layers; ++layer) document.read(layer, blocks);
}

/// Copies the blocks to `to`, which grows as needed.
std::size_t copy_out(const Document& document, const std::vector<TokenRange>& blocks, std::vector<std::byte>& to) {
  std::size_t bytes = 0;
  for (int layer = 0; layer < document.head().saved.model.layers; ++layer) {
    const auto part = document.read(layer, blocks);
    for (const auto& stretch : part.stretches) {
      for (const auto& lane : stretch) {
        for (const auto* const rows : {&lane.keys, &lane.values}) {
          const std::size_t size = rows->stride * static_cast<std::size_t>(rows->count);
          if (to.size() < bytes + size) to.resize(bytes + size);
          std::memcpy(to.data() + bytes, rows->data, size);
          bytes += size;
        }
      }
    }
  }
  return bytes;
}

void print(const char* what, const Times& times, std::size_t bytes, const Times& copy) {
  fmt::print("{:<32} {:8.2f} ms  {:6.2f} GB/s  {:5.2f} of a copy\n", what, 1e3 * times.least(),
             1e-9 * static_cast<double>(bytes) / times.least(), copy.least() / times.least());
}

void run(const std::string& where, const std::string& name) {
  const Archive archive(winnow::store::open({where}, winnow::store::Missing::is_an_error));
  std::vector<std::byte> to;
  const auto blocks = every_second_block(*archive.open(name));
  const std::size_t bytes = copy_out(*archive.open(name), blocks, to);
  const std::vector<std::byte> memory = to;
  Times copy;
  Times first;
  Times again;
  for (int i = 0; i < kRounds; ++i) {  // interleaved, so that a disturbance affects all
    copy.add(seconds_of([&] { std::memcpy(to.data(), memory.data(), bytes); }));
    const auto document = archive.open(name);
    first.add(seconds_of([&] { read(*document, blocks); }));
    again.add(seconds_of([&] { copy_out(*document, blocks, to); }));
  }
  fmt::print("{} bytes in {} stretches of each layer of {} in {}; least of {}\n", bytes, blocks.size(), name, where,
             kRounds);
  print("copied in memory", copy, bytes, copy);
  print("read for the first time", first, bytes, copy);
  print("read again and copied", again, bytes, copy);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("reading a stored document's blocks, beside a copy of the same bytes in memory");
  std::string where;
  std::string name;
  app.add_option("WHERE", where, "FOLDER or redis://HOST[:PORT][/DATABASE]")->required();
  app.add_option("NAME", name, "of the document")->required();
  return winnow::bench::run_program(app, argc, argv, [&] { run(where, name); });
}
