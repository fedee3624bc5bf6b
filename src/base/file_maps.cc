// SPDX-License-Identifier: Apache-2.0
#include "base/file_maps.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>

namespace winnow {

std::vector<std::unique_ptr<MappedRange>> maps_of_file(const std::string& path) {
  std::vector<std::unique_ptr<MappedRange>> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    int name = 0;
    // address range, permissions, offset, device, inode, path
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %*s %*s %*s %*s %n", &begin, &end, &name) != 2) continue;
    if (line.compare(static_cast<std::size_t>(name), std::string::npos, path) != 0) continue;
    out.push_back(std::make_unique<MappedRange>(reinterpret_cast<const void*>(begin), end - begin, path));
  }
  return out;
}

}  // namespace winnow
