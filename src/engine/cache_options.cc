// SPDX-License-Identifier: Apache-2.0
#include <spdlog/fmt/fmt.h>

#include "winnow/error.h"
#include "winnow/policy/method.h"
#include "winnow/recommended.h"
#include "winnow/session.h"

namespace winnow {

void CacheOptions::check() const {
  if (spec.method().retrieves && !spec.method().evicts() && budget && budget->unit() == Budget::Unit::bytes) {
    throw UsageError(fmt::format(
        "{} keeps every entry, so its budget cannot be in bytes ({}): give the number of entries that a query reads",
        method_label(spec.print()), budget->print()));
  }
  if (spec.method().needs_budget() && !budget) {
    throw UsageError(fmt::format("{} needs a budget: give entries per KV head (512), a share (10%) or bytes (64MiB)",
                                 method_label(spec.print())));
  }
}

}  // namespace winnow
