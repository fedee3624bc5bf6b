#include "policy/printable.h"

#include <spdlog/fmt/fmt.h>

namespace winnow::policy {

std::string printable(std::string_view text) {
  constexpr std::size_t kMost = 80;
  std::string out;
  for (const char c : text.substr(0, kMost)) {
    if (c >= ' ' && c <= '~') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  return text.size() > kMost ? out + "..." : out;
}

}  // namespace winnow::policy
