// SPDX-License-Identifier: Apache-2.0
// Any bytes as a saved cache with valid checksums: refused with an Error, or loaded; then further steps must not read
// or write outside its lanes.
#include <string>
#include <vector>

#include "base/log.h"
#include "fuzz/memory_file.h"
#include "fuzz/seed_model.h"
#include "support/reseal.h"
#include "winnow/error.h"
#include "winnow/saved.h"
#include "winnow/session.h"

namespace {

constexpr int kSteps = 3;

winnow::Session& session() {
  static winnow::Session one(winnow::test::seed_model(), {1, winnow::Precision::automatic, 512});
  return one;
}

void go_on(winnow::Cache& cache) {
  std::vector<float> logits(session().model().info().n_vocab);
  winnow::Cache* const one = &cache;
  for (winnow::Token token = 5; token < 5 + kSteps; ++token)
    session().step(std::span(&one, 1), std::span(&token, 1), logits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  std::string bytes(data, size);
  winnow::test::reseal(std::as_writable_bytes(std::span(bytes)));
  const winnow::test::MemoryFile file(bytes);
  try {
    winnow::describe_saved(file.path());
    auto restored = session().load(file.path());
    go_on(restored.cache);
  } catch (const winnow::Error&) {
  }
  return 0;
}
