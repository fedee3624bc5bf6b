// Any bytes as a saved cache, with checksums that hold: refused with an Error, or loaded, and then the next steps must
// not leave their lanes.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/log.h"
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
  std::vector<float> logits(static_cast<std::size_t>(session().model().info().n_vocab));
  winnow::Cache* const one = &cache;
  for (winnow::Token token = 5; token < 5 + kSteps; ++token)
    session().step(std::span(&one, 1), std::span(&token, 1), logits);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const char* data, std::size_t size) {
  winnow::set_verbosity(winnow::Verbosity::quiet);
  std::vector<char> bytes(data, data + size);
  winnow::test::reseal(std::as_writable_bytes(std::span(bytes)));
  const int fd = memfd_create("saved", 0);
  if (fd < 0 || write(fd, bytes.data(), bytes.size()) != static_cast<ssize_t>(bytes.size())) std::abort();
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  try {
    winnow::describe_saved(path);
    auto restored = session().load(path);
    go_on(restored.cache);
  } catch (const winnow::Error&) {
  }
  close(fd);
  return 0;
}
