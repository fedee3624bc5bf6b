// SPDX-License-Identifier: Apache-2.0
#include "fuzz/seeds.h"

#include <fstream>
#include <stdexcept>

namespace winnow::test {

void write_seed(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  if (!file.write(bytes.data(), static_cast<std::streamsize>(bytes.size())).flush())
    throw std::runtime_error("cannot write " + path.string());
}

}  // namespace winnow::test
