// SPDX-License-Identifier: Apache-2.0
// Texts in a folder: a session finds the texts that another one has read, its answers equal those of reading
// everything, and damaged blocks are not used.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>

#include "engine/greedy_answer.h"
#include "engine/stored_text.h"
#include "support/cache_options.h"
#include "support/damage.h"
#include "support/random_tokens.h"
#include "support/refusal.h"
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

  static Request request(const std::vector<Token>& text, const std::string& salt = "") {
    return stored_text_request(options_of("snapkv", "64"), text, salt, kAnswer);
  }

  static RequestEnd run(Scheduler& scheduler, Request request) { return end_of(scheduler, std::move(request)); }

  SchedulerOptions stored(std::size_t memory = kMuch) const { return {.prefix_memory = memory, .texts = texts_}; }

  /// Reads a text in a new session.
  Once run_once(const std::vector<Token>& text, const SessionOptions& options = {.threads = 2, .chunk = 64},
                const std::string& salt = "") const {
    Session session(model_, options);
    Scheduler scheduler(session, stored());
    const auto end = run(scheduler, request(text, salt));
    return {answer_of(end), end.cached_tokens};
  }

  Answer anew(const std::vector<Token>& text, const SessionOptions& options = {.threads = 2, .chunk = 64}) const {
    Session session(model_, options);
    Scheduler scheduler(session, {});
    return answer_of(run(scheduler, request(text)));
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
      usage_error([&] { Scheduler(session, {.texts = texts_}); }),
      "texts can only be stored in a folder or on a server if they also have memory, but their memory is 0 bytes");
  fs::create_directory(texts_);
  std::ofstream(texts_ + "/mine") << "text";
  EXPECT_NE(usage_error([&] { Scheduler(session, stored()); }), "");
}

}  // namespace
}  // namespace winnow::test
