// SPDX-License-Identifier: Apache-2.0
// Changes of one byte and of several adjacent bytes.
#include <string>

#include "fuzz/seeds.h"

void winnow::test::write_seeds(const std::filesystem::path& folder) {
  const auto change = [](int place, unsigned char by) {
    return std::string{static_cast<char>(place), static_cast<char>(place >> 8), static_cast<char>(place >> 16),
                       static_cast<char>(by)};
  };
  write_seed(folder / "nothing", change(0, 0));
  for (const int place : {10, 12, 80, 5000, 20'000, 40'000}) {
    write_seed(folder / std::to_string(place), change(place, 0x41));
    write_seed(folder / (std::to_string(place) + "-four"),
               change(place, 1) + change(place + 1, 0x80) + change(place + 2, 0xFF) + change(place + 3, 2));
  }
}
