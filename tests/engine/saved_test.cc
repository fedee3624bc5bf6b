// SPDX-License-Identifier: Apache-2.0
// A saved sequence continues like the original, and damaged files are refused.
#include "engine/saved.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "engine/model_impl.h"
#include "support/cache_options.h"
#include "support/random_tokens.h"
#include "support/refusal.h"
#include "support/reseal.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/error.h"
#include "winnow/methods.h"
#include "winnow/policy/registry.h"
#include "winnow/saved.h"
#include "winnow/session.h"

namespace winnow {
namespace {

using Bytes = std::vector<std::byte>;

using test::options_of;

class SavedTest : public testing::Test {
 protected:
  explicit SavedTest(int layers = 3)
      : model_(model_of(layers, 1)),
        session_(model_,
                 {2, Precision::automatic, 64, Pack::automatic, test::calibrated(folder_ / "model.cal", *model_)}) {}

  std::shared_ptr<const Model> model_of(int layers, std::uint32_t seed) const {
    test::TinyModel tiny;
    tiny.n_layer = layers;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    tiny.head_dim = 32;
    tiny.seed = seed;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    return Model::load(folder_ / "tiny.gguf");
  }

  std::vector<Token> tokens(int n, unsigned seed = 1) const {
    return test::random_tokens(n, model_->info().n_vocab, seed);
  }

  std::vector<float> step(Cache& cache, Token token) {
    std::vector<float> logits(model_->info().n_vocab);
    Cache* const one = &cache;
    session_.step(std::span(&one, 1), std::span(&token, 1), logits);
    return logits;
  }

  Prefilled prefill(const CacheOptions& options, int n) { return session_.prefill(tokens(n), std::span(&options, 1)); }

  void save(const Cache& cache, std::span<const float> logits) {
    session_.save(path_, cache, logits, transcript_of(cache));
  }

  Restored through_file(const Cache& cache, std::span<const float> logits) {
    save(cache, logits);
    return session_.load(path_);
  }

  /// A conversation, with two tokens more than the cache has seen.
  Transcript transcript_of(const Cache& cache) const {
    return {{"a text",
             {{Role::system, "be brief"}, {Role::user, "one"}, {Role::assistant, ""}, {Role::user, "two"}},
             PromptFormat::raw,
             ControlTokens::parsed},
            tokens(cache.stats().tokens_seen + 2)};
  }

  /// Expects that the restored sequence equals the saved one, and still does after 20 steps.
  void expect_same(Cache& cache, Restored& restored) {
    EXPECT_EQ(restored.cache.kept(), cache.kept());
    EXPECT_EQ(restored.cache.stats().tokens_seen, cache.stats().tokens_seen);
    for (const Token token : tokens(20, 7)) ASSERT_EQ(step(restored.cache, token), step(cache, token));
    EXPECT_EQ(restored.cache.kept(), cache.kept());
    EXPECT_EQ(restored.cache.stats().bytes_held, cache.stats().bytes_held);
  }

  Bytes file() const {
    const FileSource source(path_);
    Bytes bytes(source.size());
    source.read(0, bytes);
    return bytes;
  }
  void write(const Bytes& bytes) const {
    ReplacingFile out(path_);
    out.write(bytes);
    out.commit();
  }
  Restored read(const Bytes& bytes) {
    const auto& hparams = model_->impl().weights->hparams();
    return engine::read_sequence(MemorySource(bytes, "memory"), engine::identity_of(hparams, model_->hash()), hparams,
                                 account_);
  }
  std::string refusal(const Bytes& bytes) {
    try {
      read(bytes);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  }

  test::TempFolder folder_;
  std::string path_ = folder_ / "saved.kv";
  std::shared_ptr<const Model> model_;
  Session session_;
  MemoryAccount account_;
};

class SmallFile : public SavedTest {
 protected:
  SmallFile() : SavedTest(1) {
    const auto options = options_of("h2o", "8", "q4_0");
    const auto prefilled = prefill(options, 12);
    save(prefilled.caches.front(), {});
    bytes_ = file();
  }
  Bytes bytes_;
};

TEST_F(SavedTest, every_method_and_type_goes_on_bit_for_bit) {
  for (const auto& method : list_methods()) {
    for (const char* type : {"f32", "f16", "bf16", "q8_0", "q4_0", "q8_0/q4_0"}) {
      auto prefilled = prefill(options_of(method.name, "64", type), 150);
      auto restored = through_file(prefilled.caches.front(), prefilled.logits);
      EXPECT_EQ(restored.logits, prefilled.logits);
      expect_same(prefilled.caches.front(), restored);
      ASSERT_FALSE(HasFailure()) << method.name << " " << type;
    }
  }
}

TEST_F(SavedTest, all_budgets_and_unrotated_keys) {
  for (const char* spec :
       {"ada(h2o)", "pyramid(snapkv:window=8)", "tova:positions=cache", "h2o:positions=cache", "streaming-llm:sinks=2",
        "lookahead(snapkv:window=8)", "lookahead(snapkv:window=8,positions=cache)", "kvzip:rank=model",
        "quest(snapkv:window=8):dense=0", "quest(ada(h2o:when=prefill):floor=0):page=4,dense=0,read=0.1"}) {
    for (const char* budget : {"40", "30%", "64KiB", "200"}) {
      auto prefilled = prefill(options_of(spec, budget), 150);
      auto restored = through_file(prefilled.caches.front(), {});
      EXPECT_TRUE(restored.logits.empty());
      expect_same(prefilled.caches.front(), restored);
      ASSERT_FALSE(HasFailure()) << spec << " " << budget;
    }
  }
}

/// Lanes with tail blocks, whose entries are split differently from a prompt's. With a buffer of 50, they are saved a
/// few tokens before an eviction.
TEST_F(SavedTest, sequences_that_have_grown_go_on_bit_for_bit) {
  std::vector<std::string> specs = {"quest(ada(snapkv:window=8)):page=4,dense=0", "r-kv:buffer=50",
                                    "triattention:buffer=50,positions=cache"};
  for (const auto& method : list_methods()) specs.push_back(method.name);
  for (const auto& spec : specs) {
    auto prefilled = prefill(options_of(spec, "64"), 100);
    for (const Token token : tokens(45, 3)) step(prefilled.caches.front(), token);
    auto restored = through_file(prefilled.caches.front(), {});
    expect_same(prefilled.caches.front(), restored);
    ASSERT_FALSE(HasFailure()) << spec;
  }
}

std::string u32(std::uint32_t number) { return {reinterpret_cast<const char*>(&number), sizeof(number)}; }
std::string text(const std::string& words) { return u32(static_cast<std::uint32_t>(words.size())) + words; }

TEST_F(SavedTest, messages_of_files_from_before_roles_take_turns) {
  const auto prefilled = prefill(options_of("snapkv:window=8", "30%"), 100);
  through_file(prefilled.caches.front(), prefilled.logits);
  const auto with_roles = describe_saved(path_).transcript.conversation.messages;
  std::ifstream in(path_, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const std::string now = text("") + text("a text") + u32(4 + (1U << 31U)) + u32(0) + text("be brief") + u32(1) +
                          text("one") + u32(2) + text("") + u32(1) + text("two");
  const std::string before = text("be brief") + text("a text") + u32(3) + text("one") + text("") + text("two");
  const auto at = bytes.find(now);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, now.size(), before);
  constexpr std::size_t kHeadLength = 32;  // offset of the length of the first section
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data() + kHeadLength, sizeof(length));
  length = length + before.size() - now.size();
  std::memcpy(bytes.data() + kHeadLength, &length, sizeof(length));
  test::reseal(std::as_writable_bytes(std::span(bytes)));
  std::ofstream(path_, std::ios::binary) << bytes;
  EXPECT_EQ(describe_saved(path_).transcript.conversation.messages, with_roles);
  EXPECT_EQ(session_.load(path_).transcript.conversation.text, "a text");
}

TEST_F(SavedTest, a_method_that_was_added_is_known_when_it_is_loaded) {
  policy::Preset preset = *std::ranges::find(policy::built_in().presets, "knorm", &policy::Preset::name);
  preset.name = "my-knorm";
  policy::add_method(std::move(preset));
  auto prefilled = prefill(options_of("my-knorm", "64"), 100);
  auto restored = through_file(prefilled.caches.front(), {});
  EXPECT_EQ(restored.cache.options().spec.print(), "my-knorm");
  expect_same(prefilled.caches.front(), restored);
}

TEST_F(SavedTest, heads_that_cannot_be_are_refused) {
  const auto prefilled = prefill(options_of("full"), 20);
  through_file(prefilled.caches.front(), prefilled.logits);
  std::ifstream in(path_, std::ios::binary);
  std::string bytes(std::istreambuf_iterator<char>(in), {});
  const auto shape = bytes.find(u32(3) + u32(2) + u32(3) + u32(32));  // layers, KV heads, group, head size
  ASSERT_NE(shape, std::string::npos);
  bytes.replace(shape + 8, 4, u32(1U << 30U));
  test::reseal(std::as_writable_bytes(std::span(bytes)));
  std::ofstream(path_, std::ios::binary) << bytes;
  const auto said = test::refusal([&] { describe_saved(path_); });
  EXPECT_NE(said.find("shape has a 1073741824, expected 1 to 32768"), std::string::npos) << said;
}

TEST_F(SavedTest, says_what_it_is) {
  const auto prefilled = prefill(options_of("ada-snapkv:window=8", "30%", "q8_0/f16"), 100);
  const auto& cache = prefilled.caches.front();
  const auto restored = through_file(cache, prefilled.logits);
  for (const Transcript& transcript : {restored.transcript, describe_saved(path_).transcript}) {
    EXPECT_EQ(transcript.tokens, tokens(102));
    EXPECT_EQ(transcript.conversation.text, "a text");
    EXPECT_EQ(transcript.conversation.messages,
              (std::vector<Message>{
                  {Role::system, "be brief"}, {Role::user, "one"}, {Role::assistant, ""}, {Role::user, "two"}}));
    EXPECT_EQ(transcript.conversation.format, PromptFormat::raw);
    EXPECT_EQ(transcript.conversation.control, ControlTokens::parsed);
  }
  EXPECT_TRUE(is_saved(path_));
  EXPECT_FALSE(is_saved(folder_ / "tiny.gguf"));
  const auto info = describe_saved(path_);
  EXPECT_EQ(info.cache.spec.print(), "ada-snapkv:window=8");
  EXPECT_EQ(info.cache.budget->print(), "30%");
  EXPECT_EQ(info.cache.kv_type.print(), "q8_0/f16");
  EXPECT_EQ(info.model_hash, model_->hash());
  EXPECT_EQ(info.tokens_seen, 100);
  EXPECT_EQ(info.entries_per_head_mean, cache.stats().entries_per_head_mean);
  EXPECT_EQ(info.entries_min, cache.stats().entries_min);
  EXPECT_EQ(info.entries_max, cache.stats().entries_max);
  EXPECT_LT(info.entries_min, info.entries_max);
  EXPECT_EQ(info.damage, "");
  auto bytes = file();
  bytes[bytes.size() / 2] ^= std::byte{1};
  write(bytes);
  EXPECT_NE(describe_saved(path_).damage.find("checksum of layer 1"), std::string::npos);
  EXPECT_THROW(session_.load(path_), InputError);
}

TEST_F(SavedTest, the_same_sequence_gives_the_same_bytes) {
  const auto options = options_of("infllm", "64");
  Bytes first;
  for (int round = 0; round < 2; ++round) {
    const auto prefilled = prefill(options, 100);
    save(prefilled.caches.front(), prefilled.logits);
    if (round == 0) first = file();
  }
  EXPECT_EQ(file(), first);
}

TEST_F(SavedTest, another_model_or_rope_is_refused) {
  const auto prefilled = prefill(options_of("full", ""), 20);
  save(prefilled.caches.front(), {});
  const auto message = [&](const std::shared_ptr<const Model>& model) -> std::string {
    try {
      Session(model, {1, Precision::automatic, 64}).load(path_);
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  ModelOptions base;
  base.rope_freq_base = 5000;
  EXPECT_NE(message(Model::load(folder_ / "tiny.gguf", base)).find("RoPE"), std::string::npos);
  EXPECT_EQ(message(Model::load(folder_ / "tiny.gguf")), "");
  EXPECT_NE(message(model_of(3, 2)).find("was saved with the model tiny"), std::string::npos);
  EXPECT_NE(message(model_of(2, 1)).find("was saved with the model tiny"), std::string::npos);
}

TEST_F(SavedTest, what_is_no_saved_cache_is_refused) {
  EXPECT_THROW(session_.load(folder_ / "absent"), InputError);
  EXPECT_THROW(session_.load(folder_ / ""), InputError);
  EXPECT_THROW(session_.load("/dev/zero"), InputError);
  EXPECT_THROW(session_.load(folder_ / "tiny.gguf"), InputError);
  EXPECT_NE(refusal({}).find("0 bytes"), std::string::npos);
}

TEST_F(SavedTest, a_save_that_fails_leaves_what_was_there) {
  const auto prefilled = prefill(options_of("full", ""), 20);
  const Bytes before(100, std::byte{7});
  write(before);
  {
    ReplacingFile begun(path_);
    begun.write(Bytes(50));
  }
  EXPECT_EQ(file(), before);
  const auto& cache = prefilled.caches.front();
  const Transcript transcript = transcript_of(cache);
  EXPECT_THROW(session_.save(folder_ / "", cache, {}, transcript), InputError);
  EXPECT_THROW(session_.save("/dev/full", cache, {}, transcript), InputError);
  EXPECT_THROW(session_.save(folder_ / "absent/saved.kv", cache, {}, transcript), InputError);
  EXPECT_THROW(session_.save(path_, cache, {}, {{}, tokens(19)}), UsageError);
  EXPECT_THROW(session_.save(path_, cache, {}, {{}, std::vector<Token>(20, -1)}), InputError);
  EXPECT_EQ(file(), before);
  for (const auto& entry : std::filesystem::directory_iterator(folder_ / ""))
    EXPECT_NE(entry.path().extension(), ".winnow-part");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(SmallFile, every_flipped_byte_is_refused) {
  ASSERT_EQ(refusal(bytes_), "");
  for (std::size_t at = 0; at < bytes_.size(); ++at) {
    for (const unsigned flip : {1U, 0x80U, 0xFFU}) {
      auto damaged = bytes_;
      damaged[at] ^= static_cast<std::byte>(flip);
      ASSERT_NE(refusal(damaged), "") << "byte " << at << " of " << bytes_.size();
    }
  }
}

TEST_F(SmallFile, every_other_length_is_refused) {
  for (std::size_t length = 0; length < bytes_.size(); ++length)
    ASSERT_NE(refusal({bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(length)}), "") << length;
  auto longer = bytes_;
  longer.push_back(std::byte{0});
  EXPECT_NE(refusal(longer).find(std::to_string(longer.size())), std::string::npos);
}

TEST_F(SmallFile, another_version_says_so) {
  bytes_[8] = std::byte{9};
  EXPECT_NE(refusal(bytes_).find("version 9, but this winnow reads version 2"), std::string::npos);
}

/// Files with a wrong number and correct checksums are refused, or still work for a few steps.
TEST_F(SmallFile, no_number_in_it_is_trusted) {
  for (const auto& method : {"full", "streaming-llm", "h2o", "tova", "cam", "quest", "infllm", "ada(h2o)",
                             "tova:positions=cache", "quest(ada(snapkv:window=8))"}) {
    auto prefilled = prefill(options_of(method, "64"), 80);
    save(prefilled.caches.front(), prefilled.logits);
    const auto whole = file();
    const std::size_t until = std::min<std::size_t>(whole.size() - 4, 1200);
    for (std::size_t at = 12; at < until; ++at) {
      for (const std::uint32_t number : {0U, 1U, 0x7FFFFFFFU, 0xFFFFFFFFU, 63U}) {
        auto hostile = whole;
        std::memcpy(hostile.data() + at, &number, sizeof(number));
        test::reseal(hostile);
        try {
          auto restored = read(hostile);
          for (const Token token : {5, 6}) step(restored.cache, token);
        } catch (const Error&) {
        }
      }
    }
  }
}

}  // namespace
}  // namespace winnow
