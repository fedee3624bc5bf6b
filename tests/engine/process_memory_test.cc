// SPDX-License-Identifier: Apache-2.0
// Reported memory compared with the process's memory. The test's own malloc counts every allocated byte.
#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "policy/views.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/methods.h"
#include "winnow/session.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define WINNOW_OWN_MALLOC 0  // the sanitizers have their own
#else
#define WINNOW_OWN_MALLOC 1
#endif

namespace {

std::atomic<std::size_t> in_use{0};
std::atomic<std::size_t> most_in_use{0};

}  // namespace

#if WINNOW_OWN_MALLOC

// These replace libc's functions for this program and the libraries that it loads.
extern "C" {

void* __libc_malloc(std::size_t);                 // NOLINT: glibc's names
void* __libc_calloc(std::size_t, std::size_t);    // NOLINT
void* __libc_realloc(void*, std::size_t);         // NOLINT
void* __libc_memalign(std::size_t, std::size_t);  // NOLINT
void __libc_free(void*);                          // NOLINT
}

namespace {

void* counted(void* memory) {
  const std::size_t now = in_use += memory == nullptr ? 0 : malloc_usable_size(memory);
  std::size_t most = most_in_use;
  while (most < now && !most_in_use.compare_exchange_weak(most, now)) {
  }
  return memory;
}

void uncounted(void* memory) {
  if (memory != nullptr) in_use -= malloc_usable_size(memory);
}

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept { return counted(__libc_malloc(size)); }
void* calloc(std::size_t n, std::size_t size) noexcept { return counted(__libc_calloc(n, size)); }
void* memalign(std::size_t alignment, std::size_t size) noexcept { return counted(__libc_memalign(alignment, size)); }
void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept { return memalign(alignment, size); }

int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  *out = memalign(alignment, size);
  return *out == nullptr ? ENOMEM : 0;
}

void free(void* memory) noexcept {
  uncounted(memory);
  __libc_free(memory);
}

void* realloc(void* memory, std::size_t size) noexcept {
  uncounted(memory);
  return counted(__libc_realloc(memory, size));
}
}

#endif

namespace winnow {
namespace {

using test::options_of;

constexpr int kTokens = 4000;

/// Peak bytes, less the bytes held before.
struct Peaks {
  double process = 0;
  double account = 0;
  double foretold = 0;
};

/// A network with many small heads, so observers need much memory relative to keys and values.
class ProcessMemoryTest : public testing::Test {
 protected:
  ProcessMemoryTest() {
    test::TinyModel tiny;
    tiny.n_layer = 2;
    tiny.n_head = 16;
    tiny.n_head_kv = 16;
    tiny.head_dim = 4;
    tiny.ctx_train = 1 << 16;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
    calibration_ = test::calibrated(folder_ / "model.cal", *model_);
    tokens_ = test::random_tokens(kTokens, model_->info().n_vocab);
    (void)model_->vocab().tokenize("what the tokenizer makes once, it has made then");
  }

  /// Peaks of one prefill in a session that has read a short prompt before.
  Peaks peaks_of(std::span<const CacheOptions> caches) const {
    Session session(model_, {1, Precision::f32, 64, Pack::automatic, calibration_});
    const CacheOptions full;
    session.prefill(std::span(tokens_).first(64), std::span(&full, 1));
    session.reset_peak();
    const std::size_t before = in_use;
    const std::size_t held = session.memory().held;
    most_in_use = before;
    const auto read = session.prefill(tokens_, caches);
    return {static_cast<double>(most_in_use - before), static_cast<double>(session.memory().peak - held),
            static_cast<double>(session.prefill_bytes(kTokens, caches))};
  }

  test::TempFolder folder_;
  std::string calibration_;
  std::shared_ptr<const Model> model_;
  std::vector<Token> tokens_;
};

/// Expects agreement within an eighth. The rest is graphs, the allocator's rounding and work space of merging.
void expect_near(const Peaks& peaks, const std::string& what) {
  EXPECT_LE(peaks.account, peaks.process) << what;
  EXPECT_GE(peaks.account, 0.875 * peaks.process) << what;
  EXPECT_GE(peaks.foretold, 0.875 * peaks.process) << what;
  EXPECT_LE(peaks.foretold, 1.125 * peaks.process) << what;
}

TEST_F(ProcessMemoryTest, is_what_the_account_counts_and_what_is_foretold) {
  if (WINNOW_OWN_MALLOC == 0) GTEST_SKIP() << "the sanitizer has its own malloc";
  std::vector<CacheOptions> all;
  for (const auto& method : list_methods()) {
    auto options = options_of(method.name);
    if (options.spec.method().needs_budget()) options.budget = Budget::parse("512");
    expect_near(peaks_of(std::span(&options, 1)), method.name);
    all.push_back(options);
  }
  expect_near(peaks_of(all), "all of them in one pass");
}

/// The forecast allows for one head that gets the budget of all heads, which seldom happens.
TEST_F(ProcessMemoryTest, of_a_second_pass_is_no_more_than_foretold) {
  if (WINNOW_OWN_MALLOC == 0) GTEST_SKIP() << "the sanitizer has its own malloc";
  for (const char* spec :
       {"ada(h2o):over=model", "refit(ada(snapkv):over=model)", "decoding(ada(snapkv):over=model)"}) {
    const auto options = options_of(spec, "512");
    const auto peaks = peaks_of(std::span(&options, 1));
    EXPECT_GE(peaks.account, 0.875 * peaks.process) << spec;
    EXPECT_GE(peaks.foretold, 0.875 * peaks.process) << spec;
  }
}

}  // namespace
}  // namespace winnow
