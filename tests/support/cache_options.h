// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "winnow/session.h"

namespace winnow::test {

/// The options that a command line with these values gives; an empty budget means none.
inline CacheOptions options_of(const std::string& spec, const std::string& budget = "",
                               const std::string& kv_type = "f16") {
  CacheOptions out;
  out.spec = Spec::parse(spec);
  if (!budget.empty()) out.budget = Budget::parse(budget);
  out.kv_type = KvType::parse(kv_type);
  return out;
}

}  // namespace winnow::test
