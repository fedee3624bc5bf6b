// SPDX-License-Identifier: Apache-2.0
// winnow_value_bench FOLDER SIZE COUNT: the speed of writing, opening, reading and erasing COUNT values of SIZE bytes
// in a store, whose steps are on disk when they return, and as values that may be dropped. FOLDER must not exist.
#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/hash.h"
#include "program.h"
#include "store/values.h"
#include "times.h"

namespace {

using winnow::bench::seconds_of;
using winnow::store::Bytes;

constexpr std::size_t kBatch = 8;  ///< values of a step or a chain

std::string name_of(std::size_t i) { return fmt::format("{:032x}", i); }

void print(const char* what, double seconds, std::size_t bytes) {
  fmt::print("{:<32} {:9.2f} ms {:9.0f} MB/s\n", what, 1e3 * seconds, 1e-6 * static_cast<double>(bytes) / seconds);
}

/// Sum of the bytes read, so that the compiler does not remove the reads.
std::uint64_t checked = 0;

void measure_store(const std::string& folder, const Bytes& value, std::size_t count) {
  const auto open = [&] { return winnow::store::open({folder, "values"}, winnow::store::Missing::is_created); };
  auto store = open();
  const auto all = value.size() * count;
  print("store: written", seconds_of([&] {
          for (std::size_t begin = 0; begin < count; begin += kBatch) {
            store->change([&](winnow::store::Change& change) {
              for (std::size_t i = begin; i < std::min(begin + kBatch, count); ++i) {
                change.add_value(name_of(i), value.size(), [&](winnow::ByteSink& to) { to.write(value); });
                change.put_record(name_of(i), std::span(value).first(32));
              }
            });
          }
        }),
        all);
  print("store: opened", seconds_of([&] { store = open(); }), all);
  const std::vector<winnow::store::ByteRange> whole{winnow::store::kWhole};
  print("store: read and checked", seconds_of([&] {
          for (std::size_t i = 0; i < count; ++i)
            checked += winnow::hash_of(store->value(name_of(i), whole)->parts.front());
        }),
        all);
  print("store: 8 erased", seconds_of([&] {
          store->change([&](winnow::store::Change& change) {
            for (std::size_t i = 0; i < kBatch; ++i) change.erase_value(name_of(i));
          });
        }),
        value.size() * kBatch);
}

void measure_values(const std::string& folder, const Bytes& value, std::size_t count) {
  const auto all = value.size() * count;
  const auto open = [&] { return winnow::store::open_values({folder, "values"}, 2 * all); };
  auto values = open();
  print("values: written", seconds_of([&] {
          for (std::size_t begin = 0; begin < count; begin += kBatch) {
            std::vector<winnow::store::NewValue> chain;
            for (std::size_t i = begin; i < std::min(begin + kBatch, count); ++i)
              chain.push_back({name_of(i), value.size(), [&](winnow::ByteSink& to) { to.write(value); }});
            values->keep(chain);
          }
        }),
        all);
  print("values: opened", seconds_of([&] { values = open(); }), all);
  print("values: read and checked", seconds_of([&] {
          for (std::size_t i = 0; i < count; ++i)
            checked += winnow::hash_of(values->get(name_of(i), value.size())->parts.front());
        }),
        all);
  print("values: 8 erased", seconds_of([&] {
          for (std::size_t i = 0; i < kBatch; ++i) values->erase(name_of(i));
        }),
        value.size() * kBatch);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("values that are synced, and values that are not");
  std::string folder;
  std::size_t size = 0;
  std::size_t count = 0;
  app.add_option("FOLDER", folder, "must not exist")->required();
  app.add_option("SIZE", size, "bytes of a value")->required();
  app.add_option("COUNT", count, "number of values")->required();
  return winnow::bench::run_program(app, argc, argv, [&] {
    const Bytes value(size, std::byte{42});
    std::filesystem::create_directory(folder);
    measure_store(folder + "/store", value, count);
    measure_values(folder + "/values", value, count);
    fmt::print("({:x})\n", checked);
  });
}
