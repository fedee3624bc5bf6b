#include "policy/printable.h"

#include "base/printable.h"

namespace winnow::policy {

std::string printable(std::string_view text) { return brief(text); }

}  // namespace winnow::policy
