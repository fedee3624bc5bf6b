// SPDX-License-Identifier: Apache-2.0
// winnow_value_bench FOLDER SIZE COUNT: the speed of writing and reading values of SIZE bytes, as values of a store and
// as separate files, with checksums, and the time of opening with COUNT of them. FOLDER must not exist.
#include <fcntl.h>
#include <spdlog/fmt/fmt.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/hash.h"
#include "store/byte_store.h"
#include "times.h"
#include "winnow/error.h"

namespace {

using winnow::bench::seconds_of;
using winnow::store::Bytes;
namespace fs = std::filesystem;

constexpr std::size_t kBatch = 8;  ///< values per change

std::string name_of(std::size_t i) { return fmt::format("{:032x}", i); }

void print(const char* what, double seconds, std::size_t bytes) {
  fmt::print("{:<40} {:9.2f} ms {:9.0f} MB/s\n", what, 1e3 * seconds, 1e-6 * static_cast<double>(bytes) / seconds);
}

/// Sum of the bytes read, so that the compiler does not remove the reads.
std::uint64_t checked = 0;

void measure_store(const std::string& folder, const Bytes& value, std::size_t count) {
  auto store = winnow::store::open({folder, "texts"}, winnow::store::Missing::is_created);
  const auto all = value.size() * count;
  const auto put = [&](std::size_t first, std::size_t batch) {
    store->change([&](winnow::store::Change& change) {
      for (std::size_t i = first; i < std::min(first + batch, count); ++i) {
        change.add_value(name_of(i), value.size(), [&](winnow::ByteSink& to) { to.write(value); });
        change.put_record(name_of(i), std::span(value).first(32));
      }
    });
  };
  print("LMDB: written", seconds_of([&] {
          for (std::size_t i = 0; i < count; i += kBatch) put(i, kBatch);
        }),
        all);
  store.reset();
  print("LMDB: opened", seconds_of([&] {
          store = winnow::store::open({folder, "texts"}, winnow::store::Missing::is_created);
        }),
        all);
  const std::vector<winnow::store::ByteRange> whole{winnow::store::kWhole};
  print("LMDB: read and checked", seconds_of([&] {
          for (std::size_t i = 0; i < count; ++i)
            checked += winnow::hash_of(store->value(name_of(i), whole)->parts.front());
        }),
        all);
  print("LMDB: 8 erased", seconds_of([&] {
          store->change([&](winnow::store::Change& change) {
            for (std::size_t i = 0; i < kBatch; ++i) change.erase_value(name_of(i));
          });
        }),
        value.size() * kBatch);
}

void write_file(const std::string& path, const Bytes& value) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || ::write(fd, value.data(), value.size()) != static_cast<ssize_t>(value.size())) std::abort();
  close(fd);
}

void measure_files(const std::string& folder, const Bytes& value, std::size_t count) {
  fs::create_directory(folder);
  const auto path = [&](std::size_t i) { return folder + "/" + name_of(i); };
  const auto all = value.size() * count;
  print("files: written, hashed and renamed", seconds_of([&] {
          for (std::size_t i = 0; i < count; ++i) {
            checked += winnow::hash_of(value);
            write_file(path(i) + ".part", value);
            fs::rename(path(i) + ".part", path(i));
          }
        }),
        all);
  print("files: listed, sizes and times", seconds_of([&] {
          for (const auto& entry : fs::directory_iterator(folder)) {
            struct stat about {};
            if (stat(entry.path().c_str(), &about) == 0) checked += static_cast<std::uint64_t>(about.st_size);
          }
        }),
        all);
  Bytes to(value.size());
  print("files: read and checked", seconds_of([&] {
          for (std::size_t i = 0; i < count; ++i) {
            const int fd = ::open(path(i).c_str(), O_RDONLY | O_CLOEXEC);
            if (::read(fd, to.data(), to.size()) != static_cast<ssize_t>(to.size())) std::abort();
            close(fd);
            checked += winnow::hash_of(to);
          }
        }),
        all);
  print("files: 8 erased", seconds_of([&] {
          for (std::size_t i = 0; i < kBatch; ++i) fs::remove(path(i));
        }),
        value.size() * kBatch);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    fmt::print(stderr, "usage: {} FOLDER SIZE COUNT\n", argv[0]);
    return 2;
  }
  const std::string folder = argv[1];
  const Bytes value(std::stoul(argv[2]), std::byte{42});
  const std::size_t count = std::stoul(argv[3]);
  try {
    fs::create_directory(folder);
    measure_store(folder + "/lmdb", value, count);
    measure_files(folder + "/files", value, count);
  } catch (const winnow::Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
  fmt::print("({:x})\n", checked);
  return 0;
}
