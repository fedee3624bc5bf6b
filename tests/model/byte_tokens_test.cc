// SPDX-License-Identifier: Apache-2.0
// Characters that the vocabulary lacks are spelled with byte tokens in linear time: libllama allocates the tokens'
// array a few times, not once for each character.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <string>

#include "model/model_file.h"
#include "model/vocab.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"

namespace {

constexpr std::size_t kLarge = 1 << 16;  // bytes
std::atomic<int> large_blocks = 0;       // allocated so far

}  // namespace

// Not inlined, since GCC would warn about free() otherwise.
[[gnu::noinline]] void* operator new(std::size_t size) {
  if (size >= kLarge) ++large_blocks;
  if (void* const out = std::malloc(size == 0 ? 1 : size)) return out;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* block) noexcept { std::free(block); }
[[gnu::noinline]] void operator delete(void* block, std::size_t) noexcept { std::free(block); }

namespace winnow::model {
namespace {

TEST(ByteTokens, memory_is_not_taken_again_for_each_character) {
  constexpr int kCharacters = 30'000;
  std::string text;
  for (int i = 0; i < kCharacters; ++i) text += "\u4e2d";
  const test::TempFolder folder;
  test::write_tiny_gguf({}, folder / "tiny.gguf");
  const Vocab vocab(ModelFile(folder / "tiny.gguf"));
  large_blocks = 0;
  EXPECT_GE(vocab.tokenize(text, ControlTokens::as_text).size(), 3U * kCharacters);
  EXPECT_LT(large_blocks, 200);
}

}  // namespace
}  // namespace winnow::model
