// SPDX-License-Identifier: Apache-2.0
#include "base/file_maps.h"

#include <cstdio>
#include <fstream>

namespace winnow {

std::vector<std::unique_ptr<MappedRange>> maps_of_file(const std::string& path) {
  std::vector<std::unique_ptr<MappedRange>> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    void* begin = nullptr;
    void* end = nullptr;
    int name = 0;
    // address range, permissions, offset, device, inode, path
    if (std::sscanf(line.c_str(), "%p-%p %*s %*s %*s %*s %n", &begin, &end, &name) != 2) continue;
    if (line.compare(static_cast<std::size_t>(name), std::string::npos, path) != 0) continue;
    const auto bytes = static_cast<std::size_t>(static_cast<const char*>(end) - static_cast<const char*>(begin));
    out.push_back(std::make_unique<MappedRange>(begin, bytes, path));
  }
  return out;
}

}  // namespace winnow
