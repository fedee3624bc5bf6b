// SPDX-License-Identifier: Apache-2.0
// Experts held in two layouts are counted twice; if memory is short, they are held once.
#include <ggml.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/weights.h"
#include "support/in_child.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace winnow {
namespace {

class ExpertMemory : public testing::Test {
 protected:
  ExpertMemory() {
    test::TinyModel tiny = test::tiny_of("qwen3moe");
    tiny.type = GGML_TYPE_Q4_K;
    tiny.n_embd = tiny.n_ff_expert = 256;
    tiny.n_expert = 64;
    test::write_tiny_gguf(tiny, path_);
  }

  /// Bytes, in the file's layout, of the experts that are held in two layouts.
  static std::size_t held_twice(const model::Weights& weights) {
    std::size_t out = 0;
    for (int l = 0; l < weights.hparams().n_layer; ++l) {
      const auto& experts = weights.layer(l).experts;
      for (const auto* const matrices : {&experts.gate, &experts.up, &experts.down})
        if (matrices->of_single_rows != matrices->of_many_rows) out += ggml_nbytes(matrices->of_many_rows);
    }
    return out;
  }

  /// Limits this process to `bytes` more than it has.
  static void limit_memory(std::size_t bytes) {
    std::size_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    const rlimit limit{pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE)) + bytes, RLIM_INFINITY};
    setrlimit(RLIMIT_AS, &limit);
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "tiny.gguf";
};

TEST_F(ExpertMemory, is_that_of_both_layouts_or_of_the_file_s_alone) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs more itself";
#endif
  const auto weights = model::Weights::load(path_);
  const std::size_t twice = held_twice(*weights);
  if (twice == 0) GTEST_SKIP() << "ggml has no second layout for this type on this machine";
  EXPECT_EQ(twice, 2U * 3 * 64 * ggml_row_size(GGML_TYPE_Q4_K, 256) * 256);
  const std::size_t expected = weights->bytes() - twice;
  EXPECT_EQ(test::failure_in_child([&](test::SharedText&) -> std::string {
              const std::size_t size = std::filesystem::file_size(path_);
              limit_memory(size + size / 2);
              const auto in_need = model::Weights::load(path_);
              if (held_twice(*in_need) != 0) return "experts are held twice";
              return in_need->bytes() == expected ? "" : std::to_string(in_need->bytes()) + " bytes are counted";
            }),
            "");
}

}  // namespace
}  // namespace winnow
