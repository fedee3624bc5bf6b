// SPDX-License-Identifier: Apache-2.0
// Texts in a folder: a session finds the texts that another one has read, its answers equal those of reading
// everything, and damaged blocks are not used.
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <random>
#include <set>

#include "base/as_size.h"
#include "base/byte_stream.h"
#include "base/hash.h"
#include "engine/greedy_answer.h"
#include "engine/stored_text.h"
#include "support/cache_options.h"
#include "support/damage.h"
#include "support/random_tokens.h"
#include "support/refusal.h"
#include "support/some_calibration.h"
#include "support/temp.h"
#include "support/tiny_gguf.h"
#include "winnow/scheduler.h"

namespace winnow::test {
namespace {

namespace fs = std::filesystem;

constexpr int kAnswer = 4;
constexpr std::size_t kMuch = std::size_t{64} << 20U;

/// Result of a session's only request.
struct Once {
  Answer answer;
  int cached_tokens;
};

const SessionOptions kOptions{.threads = 2, .chunk = 64};

constexpr std::size_t kNames = 8 + 4 + 4 * 8;  // magic, version, keys

bool is_state(const std::string& path) {
  const auto bytes = bytes_of_file(path);
  const MemorySource source(std::as_bytes(std::span(bytes)), path);
  return !ByteCursor(source, kNames, bytes.size()).text("the name").empty();
}

/// Sets all bytes of a state to `byte` and computes its checksums anew. Does nothing to a block.
void forge_state(const std::string& path, char byte) {
  const auto old = bytes_of_file(path);
  const MemorySource source(std::as_bytes(std::span(old)), path);
  ByteCursor from(source, kNames, old.size());
  if (from.text("the name").empty()) return;
  std::vector<Token> tokens(from.take<std::uint32_t>("tokens"));
  from.read(std::span(tokens), "tokens");
  std::vector<std::uint64_t> sizes(from.take<std::uint32_t>("layers"));
  from.read(std::span(sizes), "sizes");
  MemorySink to;
  to.write(std::as_bytes(std::span(old).first(old.size() - from.left())));
  const auto forged = [byte](std::uint64_t size) { return std::vector<std::byte>(size, std::byte(byte)); };
  for (const std::uint64_t size : sizes) put(to, hash_of(forged(size)));
  put(to, hash_of(to.bytes()));
  for (const std::uint64_t size : sizes) to.write(forged(size));
  ASSERT_EQ(to.bytes().size(), old.size());
  std::ofstream(path, std::ios::binary | std::ios::trunc)
      .write(reinterpret_cast<const char*>(to.bytes().data()), static_cast<std::streamsize>(old.size()));
}

/// A model, and sessions that share a folder of texts.
class TextTiers : public testing::Test {
 public:
  TextTiers() {
    TinyModel tiny;
    tiny.n_head = 6;
    tiny.n_head_kv = 2;
    write_tiny_gguf(tiny, folder_ / "tiny.gguf");
    model_ = Model::load(folder_ / "tiny.gguf");
  }

  std::vector<Token> tokens(int n, unsigned seed) const { return random_tokens(n, model_->info().n_vocab, seed); }

  static Request request(const std::vector<Token>& text, const std::string& salt = "", const char* spec = "snapkv") {
    return stored_text_request(options_of(spec, "64"), text, salt, kAnswer);
  }

  static RequestEnd run(Scheduler& scheduler, Request request) { return end_of(scheduler, std::move(request)); }

  SchedulerOptions stored(std::size_t memory = kMuch) const { return {.texts = {.memory = memory, .place = texts_}}; }

  /// Reads a text in a new session.
  Once run_once(const std::vector<Token>& text, const SessionOptions& options = {.threads = 2, .chunk = 64},
                const std::string& salt = "", const char* spec = "snapkv") const {
    Session session(model_, options);
    Scheduler scheduler(session, stored());
    const auto end = run(scheduler, request(text, salt, spec));
    return {answer_of(end), end.cached_tokens};
  }

  Answer anew(const std::vector<Token>& text, const SessionOptions& options = {.threads = 2, .chunk = 64},
              const char* spec = "snapkv") const {
    Session session(model_, options);
    Scheduler scheduler(session, {});
    return answer_of(run(scheduler, request(text, "", spec)));
  }

  std::vector<std::string> files() const {
    std::set<std::string> out;
    for (const auto& entry : fs::directory_iterator(texts_)) {
      if (entry.path().extension() == ".text") out.insert(entry.path());
    }
    return {out.begin(), out.end()};
  }

  TempFolder folder_;
  std::string texts_ = folder_ / "texts";
  std::shared_ptr<const Model> model_;
};

TEST_F(TextTiers, are_found_by_another_session) {
  const auto text = tokens(500, 1);
  const auto wanted = anew(text);
  EXPECT_EQ(run_once(text).cached_tokens, 0);
  EXPECT_EQ(files().size(), 500U / 64);
  const auto again = run_once(text);
  EXPECT_GT(again.cached_tokens, 350);
  EXPECT_EQ(again.answer, wanted);
  auto longer = text;
  const auto more = tokens(200, 2);
  longer.insert(longer.end(), more.begin(), more.end());
  const auto grown = run_once(longer);
  EXPECT_EQ(grown.cached_tokens, 448);
  EXPECT_EQ(grown.answer, anew(longer));
  EXPECT_EQ(files().size(), 700U / 64);
}

TEST_F(TextTiers, are_not_found_where_something_differs) {
  const auto text = tokens(400, 1);
  run_once(text);
  EXPECT_EQ(run_once(text, {.threads = 2, .chunk = 64}, "another").cached_tokens, 0);
  EXPECT_EQ(run_once(text, {.threads = 2, .chunk = 128}).cached_tokens, 0);
  EXPECT_EQ(run_once(text, {.threads = 2, .precision = Precision::f32, .chunk = 64}).cached_tokens, 0);
  auto other = text;
  other[10] ^= 1;
  EXPECT_EQ(run_once(other).cached_tokens, 0);
  EXPECT_GT(run_once(text, {.threads = 1, .chunk = 64}).cached_tokens, 250);
}

TEST_F(TextTiers, are_never_believed_when_they_are_damaged) {
  const auto text = tokens(400, 1);
  const auto wanted = anew(text);
  run_once(text);
  const auto whole = files();
  std::mt19937 random(3);
  Session session(model_, {.threads = 2, .chunk = 64});
  for (int i = 0; i < 60; ++i) {
    const auto& path = whole[random() % whole.size()];
    auto bytes = bytes_of_file(path);
    const std::size_t at = i % 2 == 0 ? random() % 600 : random() % bytes.size();
    bytes[at] = static_cast<char>(bytes[at] ^ (1 << (i % 8)));
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes.substr(0, i % 10 == 9 ? at : bytes.size());
    Scheduler scheduler(session, stored());
    const auto end = run(scheduler, request(text));
    EXPECT_EQ(answer_of(end), wanted) << path << " at " << at;
    EXPECT_LT(end.cached_tokens, 400) << path << " at " << at;
  }
  EXPECT_EQ(files(), whole) << "what was damaged was not written again";
}

TEST_F(TextTiers, with_several_damaged_blocks_are_repaired_at_once) {
  const auto text = tokens(400, 1);
  const auto wanted = anew(text);
  run_once(text);
  const auto whole = files();
  std::map<fs::path, std::string> bytes;
  for (const auto& path : whole) {
    bytes[path] = bytes_of_file(path);
    auto damaged = bytes[path];
    damaged.back() = static_cast<char>(damaged.back() ^ 1);
    std::ofstream(path, std::ios::binary | std::ios::trunc) << damaged;
  }
  EXPECT_EQ(run_once(text).answer, wanted);
  EXPECT_EQ(files(), whole);
  const auto damaged =
      std::ranges::count_if(whole, [&](const auto& path) { return bytes_of_file(path) != bytes[path]; });
  EXPECT_LE(damaged, 1) << "only the last block is not looked at: its tokens are read in any case";
}

constexpr std::array kWithStates = {"h2o", "expected-attention", "infllm", "kvzip:after=chunk,chunk=64"};

TEST_F(TextTiers, with_damaged_states_are_read_anew) {
  const auto text = tokens(400, 1);
  std::mt19937 random(4);
  for (const char* spec : kWithStates) {
    fs::remove_all(texts_);
    const auto wanted = anew(text, kOptions, spec);
    run_once(text, kOptions, "", spec);
    const auto whole = files();
    ASSERT_GT(whole.size(), 400U / 64) << spec;
    const int usual = run_once(text, kOptions, "", spec).cached_tokens;
    EXPECT_GT(usual, 250) << spec;
    int noticed = 0;
    for (int i = 0; i < 2 * static_cast<int>(whole.size()); ++i) {
      const auto& path = whole[as_size(i / 2)];
      auto bytes = bytes_of_file(path);
      const std::size_t at = i % 2 == 0 ? random() % 150 : random() % bytes.size();
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << (i % 8)));
      std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
      const auto once = run_once(text, kOptions, "", spec);
      EXPECT_EQ(once.answer, wanted) << spec << ", " << path << " at " << at;
      noticed += once.cached_tokens < usual ? 1 : 0;
    }
    EXPECT_GE(noticed, 2 * static_cast<int>(whole.size() - 2))
        << spec << ": only the last block may have to pass, and then nothing needs the states after it";
    EXPECT_EQ(files(), whole) << "what was damaged was not written again";
  }
}

TEST_F(TextTiers, with_damaged_states_are_read_from_earlier_ones) {
  const auto text = tokens(400, 1);
  const std::vector<Token> beginning(text.begin(), text.begin() + 200);
  for (const char* spec : kWithStates) {
    fs::remove_all(texts_);
    run_once(beginning, kOptions, "", spec);
    const auto of_beginning = files();
    EXPECT_EQ(run_once(text, kOptions, "", spec).cached_tokens, 192) << spec;
    for (const auto& path : files()) {
      if (std::ranges::binary_search(of_beginning, path) || !is_state(path)) continue;
      auto bytes = bytes_of_file(path);
      bytes.back() ^= 1;
      std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    }
    const auto once = run_once(text, kOptions, "", spec);
    EXPECT_EQ(once.cached_tokens, 192) << spec;
    EXPECT_EQ(once.answer, anew(text, kOptions, spec)) << spec;
  }
}

/// Forged numbers with valid checksums may change an answer. They must not crash anything.
TEST_F(TextTiers, with_forged_states_are_answered) {
  const auto text = tokens(400, 1);
  for (const char* spec : kWithStates) {
    for (const char byte : {'\x00', '\x7f', '\xff'}) {
      fs::remove_all(texts_);
      run_once(text, kOptions, "", spec);
      for (const auto& path : files()) forge_state(path, byte);
      EXPECT_GT(run_once(text, kOptions, "", spec).cached_tokens, 250) << spec;
    }
  }
}

TEST_F(TextTiers, have_states_of_their_calibration) {
  const auto text = tokens(400, 1);
  const auto with = [&](unsigned seed) {
    return SessionOptions{
        .threads = 2, .chunk = 64, .calibration = calibrated(folder_ / std::to_string(seed), *model_, seed)};
  };
  EXPECT_EQ(run_once(text, with(1), "", "kvzap").cached_tokens, 0);
  EXPECT_GT(run_once(text, with(1), "", "kvzap").cached_tokens, 250);
  EXPECT_EQ(run_once(text, with(2), "", "kvzap").cached_tokens, 0);
  EXPECT_EQ(run_once(text, with(2), "", "kvzap").answer, anew(text, with(2), "kvzap"));
  EXPECT_GT(run_once(text, with(2)).cached_tokens, 250) << "keys and values do not depend on it";
}

TEST_F(TextTiers, hold_states_that_memory_does_not) {
  Session session(model_, kOptions);
  Scheduler scheduler(session, stored(std::size_t{600} << 10U));  // about one text
  std::vector<std::vector<Token>> texts;
  for (unsigned i = 0; i < 6; ++i) texts.push_back(tokens(400, i));
  for (const char* spec : {"h2o", "ems"}) {
    for (const auto& text : texts) run_once(text, kOptions, "", spec);  // its end writes all values
    for (const auto& text : texts) {
      const auto end = run(scheduler, request(text, "", spec));
      EXPECT_EQ(answer_of(end), anew(text, kOptions, spec));
      EXPECT_GT(end.cached_tokens, 250);
    }
  }
}

TEST_F(TextTiers, hold_what_memory_does_not) {
  Session session(model_, {.threads = 2, .chunk = 64});
  Scheduler scheduler(session, stored(std::size_t{600} << 10U));  // about one text
  std::vector<std::vector<Token>> texts;
  for (unsigned i = 0; i < 6; ++i) texts.push_back(tokens(400, i));
  for (const auto& text : texts) run(scheduler, request(text));
  for (const auto& text : texts) {
    const auto end = run(scheduler, request(text));
    EXPECT_EQ(answer_of(end), anew(text));
    EXPECT_GT(end.cached_tokens, 60);
    EXPECT_LE(scheduler.prefix_use().bytes, std::size_t{600} << 10U);
  }
}

constexpr std::size_t kTwoBlocks = std::size_t{140} << 10U;

TEST_F(TextTiers, hold_texts_that_are_larger_than_memory) {
  testing::internal::CaptureStderr();
  const auto text = tokens(400, 1);
  auto longer = text;
  const auto more = tokens(200, 2);
  longer.insert(longer.end(), more.begin(), more.end());
  for (const char* spec :
       {"snapkv", "h2o", "kvzip:after=chunk,chunk=64", "ada(snapkv):over=model", "ada(h2o):over=model"}) {
    fs::remove_all(texts_);
    const auto cached = [&](const std::vector<Token>& asked) {
      Session session(model_, kOptions);
      Scheduler scheduler(session, stored(kTwoBlocks));
      const auto end = run(scheduler, request(asked, "", spec));
      EXPECT_EQ(answer_of(end), anew(asked, kOptions, spec)) << spec;
      EXPECT_LE(scheduler.prefix_use().bytes, kTwoBlocks) << spec;
      return end.cached_tokens;
    };
    EXPECT_EQ(cached(text), 0) << spec;
    EXPECT_GE(cached(text), 320) << spec;
    EXPECT_EQ(cached(longer), 384) << spec;
    EXPECT_GE(cached(longer), 512) << spec;
    const auto all = files();
    EXPECT_EQ(std::ranges::count_if(all, [](const auto& path) { return !is_state(path); }), 600 / 64) << spec;
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "") << "nothing has failed";
}

TEST_F(TextTiers, that_vanish_or_change_during_a_reading_are_read_anew) {
  const auto text = tokens(400, 1);
  const auto wanted = anew(text);
  const auto remove = [](const std::string& path) { fs::remove(path); };
  const auto damage = [](const std::string& path) {
    auto bytes = bytes_of_file(path);
    bytes.back() ^= 1;
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
  };
  const auto cut = [](const std::string& path) {
    std::error_code gone;  // removed, since another of its text is damaged
    fs::resize_file(path, 1000, gone);
  };
  const std::vector<std::function<void(const std::string&)>> changes = {remove, damage, cut};
  int noticed = 0;
  for (int quanta = 0; quanta < 8; ++quanta) {
    for (const auto& change : changes) {
      run_once(text);
      Session session(model_, kOptions);
      auto options = stored(kTwoBlocks);
      options.max_itl = std::chrono::milliseconds(0);
      Scheduler scheduler(session, options);
      RequestEnd end;
      auto asked = request(text);
      asked.events.on_end = [&end](RequestEnd ended) { end = std::move(ended); };
      scheduler.add(std::move(asked));
      for (int i = 0; i < quanta; ++i) scheduler.advance();
      for (const auto& path : files()) change(path);
      while (scheduler.advance()) continue;
      EXPECT_EQ(answer_of(end), wanted) << quanta;
      noticed += end.cached_tokens < 320 ? 1 : 0;
    }
  }
  EXPECT_GT(noticed, 6);
}

TEST_F(TextTiers, that_cannot_be_written_change_no_answer) {
  const auto text = tokens(400, 1);
  for (int quanta = 0; quanta < 6; ++quanta) {
    Session session(model_, kOptions);
    Scheduler scheduler(session, stored(kTwoBlocks));
    RequestEnd end;
    auto asked = request(text);
    asked.events.on_end = [&end](RequestEnd ended) { end = std::move(ended); };
    scheduler.add(std::move(asked));
    for (int i = 0; i < quanta; ++i) scheduler.advance();
    fs::remove_all(texts_);
    while (scheduler.advance()) continue;
    EXPECT_EQ(answer_of(end), anew(text)) << quanta;
    EXPECT_EQ(run(scheduler, request(text)).cached_tokens, 128) << "memory has two blocks";
  }
}

TEST_F(TextTiers, that_are_gone_change_no_answer) {
  const auto text = tokens(400, 1);
  Session session(model_, {.threads = 2, .chunk = 64});
  Scheduler scheduler(session, stored());
  fs::remove_all(texts_);
  for (unsigned i = 0; i < 3; ++i) EXPECT_EQ(answer_of(run(scheduler, request(tokens(300, i)))), anew(tokens(300, i)));
  EXPECT_FALSE(fs::exists(texts_));
}

TEST_F(TextTiers, are_fetched_while_others_are_answered) {
  std::vector<std::vector<Token>> texts;
  for (unsigned i = 0; i < 8; ++i) texts.push_back(tokens(300, i % 4));
  for (const auto& text : texts) run_once(text);
  Session session(model_, {.threads = 2, .chunk = 64});
  Scheduler scheduler(session, stored());
  std::vector<RequestEnd> ends(texts.size());
  for (std::size_t i = 0; i < texts.size(); ++i) {
    auto one = request(texts[i]);
    one.events.on_end = [&ends, i](RequestEnd end) { ends[i] = std::move(end); };
    scheduler.add(std::move(one));
  }
  const auto cancelled = scheduler.add(request(tokens(300, 2)));
  scheduler.advance();
  scheduler.cancel(cancelled);
  while (scheduler.advance()) continue;
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(answer_of(ends[i]), anew(texts[i])) << i;
    EXPECT_GT(ends[i].cached_tokens, 150) << i;
  }
}

TEST_F(TextTiers, need_memory_and_a_folder_of_their_own) {
  Session session(model_, {.threads = 1});
  EXPECT_EQ(
      usage_error([&] { Scheduler(session, {.texts = {.place = texts_}}); }),
      "texts can only be stored in a folder or on a server if they also have memory, but their memory is 0 bytes");
  fs::create_directory(texts_);
  std::ofstream(texts_ + "/mine") << "text";
  EXPECT_NE(usage_error([&] { Scheduler(session, stored()); }), "");
}

}  // namespace
}  // namespace winnow::test
