// SPDX-License-Identifier: Apache-2.0
// Specs, budgets and kv types from any bytes: refused with a UsageError, or printed in a form that parses to the same
// value.
#include <cstdlib>
#include <string_view>

#include "winnow/error.h"
#include "winnow/kv_type.h"
#include "winnow/spec.h"

namespace {

void must(bool holds) {
  if (!holds) std::abort();
}

template <class Read>
void refused_or(const Read& read) {
  try {
    read();
  } catch (const winnow::UsageError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  const std::string_view text(data, size);
  refused_or([&] {
    const auto spec = winnow::Spec::parse(text);
    must(winnow::Spec::parse(spec.print()) == spec);
    must(winnow::Spec::parse(spec.print_full()) == spec);
  });
  refused_or([&] {
    for (const auto& spec : winnow::Spec::parse_list(text)) must(winnow::Spec::parse(spec.print()) == spec);
  });
  refused_or([&] {
    const auto budget = winnow::Budget::parse(text);
    must(winnow::Budget::parse(budget.print()) == budget);
  });
  refused_or([&] {
    const auto type = winnow::KvType::parse(text);
    must(winnow::KvType::parse(type.print()) == type);
  });
  return 0;
}
