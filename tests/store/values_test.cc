// SPDX-License-Identifier: Apache-2.0
// Values that may be dropped: chains lose their ends first, and a value is complete or missing whatever happens to the
// store.
#include "store/values.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "store/redis_server.h"
#include "store/some_bytes.h"
#include "support/refusal.h"
#include "support/temp.h"
#include "winnow/store_error.h"

namespace winnow::test {
namespace {

namespace fs = std::filesystem;
using store::Bytes;
using store::NewValue;
using store::ValuePart;
using store::Values;

constexpr std::size_t kSize = 100'000;

std::string value_key(int chain, int link) { return fmt::format("{:016x}{:016x}", chain, link); }

/// A value that depends on its place in its chain.
Bytes value_of(int chain, int link) { return pattern(kSize, chain * 1000 + link); }

void keep(Values& to, int chain, int links) {
  std::vector<NewValue> values;
  for (int i = 0; i < links; ++i) {
    values.push_back({value_key(chain, i), kSize, [chain, i](ByteSink& sink) { sink.write(value_of(chain, i)); }});
  }
  to.keep(values);
}

std::vector<std::string> keys_of(int chain, int links) {
  std::vector<std::string> out;
  for (int i = 0; i < links; ++i) out.push_back(value_key(chain, i));
  return out;
}

/// Number of a chain's values that exist, up to the first missing one.
std::size_t whole_of(Values& store, int chain, int links) {
  const auto exist = store.exist(keys_of(chain, links));
  return static_cast<std::size_t>(std::find(exist.begin(), exist.end(), false) - exist.begin());
}

/// Number of a chain's values that exist, even after a missing one.
int held_of(Values& store, int chain, int links) {
  const auto exist = store.exist(keys_of(chain, links));
  return static_cast<int>(std::count(exist.begin(), exist.end(), true));
}

/// True if every existing value of a chain has its original bytes.
bool are_whole(Values& store, int chain, int links) {
  for (int i = 0; i < links; ++i) {
    const auto found = store.get(value_key(chain, i), kSize);
    if (!found) continue;
    const auto wanted = value_of(chain, i);
    if (found->parts.size() != 1 || !std::equal(wanted.begin(), wanted.end(), found->parts[0].begin())) return false;
  }
  return true;
}

std::size_t bytes_in(const std::string& folder) {
  std::size_t out = 0;
  for (const auto& entry : fs::directory_iterator(folder)) out += entry.file_size();
  return out;
}

class ValueFolderTest : public testing::Test {
 protected:
  std::unique_ptr<Values> open(std::size_t most = std::size_t{1} << 30U) const {
    return store::open_values({texts_, "texts"}, most);
  }
  TempFolder folder_;
  std::string texts_ = folder_ / "a/texts";
};

TEST_F(ValueFolderTest, has_what_was_kept_when_it_is_opened_again) {
  keep(*open(), 1, 5);
  const auto store = open();
  EXPECT_EQ(whole_of(*store, 1, 8), 5U);
  EXPECT_EQ(whole_of(*store, 2, 8), 0U);
  EXPECT_TRUE(are_whole(*store, 1, 5));
  EXPECT_EQ(store->held()->count, 5U);
  EXPECT_EQ(store->held()->bytes, 5 * kSize);
  EXPECT_EQ(bytes_in(texts_), 5 * kSize);
}

TEST_F(ValueFolderTest, gives_no_bytes_of_another_size) {
  const auto store = open();
  keep(*store, 1, 1);
  EXPECT_FALSE(store->get(value_key(2, 0), kSize));
  EXPECT_TRUE(store->get(value_key(1, 0), kSize - 1)->parts.empty());
  store->erase(value_key(1, 0));
  EXPECT_FALSE(store->get(value_key(1, 0), kSize));
  EXPECT_EQ(store->held()->bytes, 0U);
}

TEST_F(ValueFolderTest, has_values_that_come_and_go_in_parts) {
  const auto store = open(10 * kSize);
  const auto wanted = value_of(1, 0);
  const auto half = std::span(wanted).first(kSize / 2);
  {
    const auto abandoned = store->begin(value_key(1, 0), kSize);
    abandoned->write(0, half);
    EXPECT_EQ(bytes_in(texts_), half.size());
  }
  EXPECT_EQ(bytes_in(texts_), 0U);
  const auto part = store->begin(value_key(1, 0), kSize);
  part->write(half.size(), std::span(wanted).subspan(half.size()));
  part->write(0, half);
  EXPECT_FALSE(store->get(value_key(1, 0), kSize)) << "it is not stored yet";
  const NewValue whole{.key = value_key(1, 0), .size = kSize, .part = part.get()};
  store->keep(std::span(&whole, 1));
  EXPECT_TRUE(are_whole(*store, 1, 1));
  EXPECT_EQ(store->held()->bytes, kSize);
  const auto some = store->get_part(value_key(1, 0), kSize, {1000, 3000});
  EXPECT_TRUE(std::ranges::equal(some->parts.front(), std::span(wanted).subspan(1000, 2000)));
  EXPECT_TRUE(store->get_part(value_key(1, 0), kSize - 1, {1000, 3000})->parts.empty());
  EXPECT_FALSE(store->get_part(value_key(1, 1), kSize, {1000, 3000}));
}

TEST_F(ValueFolderTest, begins_as_many_parts_as_have_room) {
  EXPECT_EQ(open(kSize / 2)->begin(value_key(1, 0), kSize), nullptr);
  const auto store = open(2 * kSize);
  std::vector<std::unique_ptr<ValuePart>> parts;
  std::vector<NewValue> chain;
  for (int i = 0; i < 2; ++i) {
    parts.push_back(store->begin(value_key(1, i), kSize));
    parts.back()->write(0, value_of(1, i));
    chain.push_back({.key = value_key(1, i), .size = kSize, .part = parts.back().get()});
  }
  EXPECT_EQ(store->begin(value_key(1, 2), kSize), nullptr);
  parts.pop_back();
  EXPECT_NE(store->begin(value_key(1, 2), kSize), nullptr);
  store->keep(std::span(chain).first(1));
  parts.clear();
  EXPECT_TRUE(are_whole(*store, 1, 1));
  parts.push_back(store->begin(value_key(1, 2), kSize));
  EXPECT_NE(store->begin(value_key(1, 3), kSize), nullptr) << "a stored part is not one any more";
}

TEST_F(ValueFolderTest, counts_parts_of_a_killed_process) {
  auto store = open(4 * kSize);
  keep(*store, 1, 1);
  const auto part = texts_ + "/" + value_key(2, 0) + ".00000001.part";
  std::ofstream(part) << std::string(2 * kSize, 'x');
  store = open(4 * kSize);
  EXPECT_EQ(store->held()->bytes, 3 * kSize);
  keep(*store, 3, 2);
  EXPECT_EQ(held_of(*store, 3, 2), 2);
  EXPECT_LE(bytes_in(texts_), 4 * kSize);
  fs::last_write_time(part, fs::file_time_type::clock::now() - std::chrono::hours(2));
  store = open(4 * kSize);
  EXPECT_FALSE(fs::exists(part));
  EXPECT_EQ(store->held()->bytes, bytes_in(texts_));
}

TEST_F(ValueFolderTest, ends_a_chain_where_a_value_that_is_only_used_is_missing) {
  const auto store = open();
  keep(*store, 1, 2);
  std::vector<NewValue> chain;
  for (int i = 0; i < 4; ++i) {
    chain.push_back({value_key(1, i), kSize});
    if (i == 3) chain.back().fill = [](ByteSink& sink) { sink.write(value_of(1, 3)); };
  }
  store->keep(chain);
  EXPECT_EQ(held_of(*store, 1, 4), 2);
}

TEST_F(ValueFolderTest, reads_no_more_than_it_expects) {
  const auto store = open();
  keep(*store, 1, 2);
  const auto path_of = [&](int link) { return texts_ + "/" + value_key(1, link) + ".text"; };
  fs::resize_file(path_of(0), std::uintmax_t{1} << 42U);
  EXPECT_TRUE(store->get(value_key(1, 0), kSize)->parts.empty());
  fs::remove(path_of(1));
  ASSERT_EQ(mkfifo(path_of(1).c_str(), 0600), 0);
  fs::create_directory(path_of(2));
  fs::create_symlink(path_of(0), path_of(3));
  for (const int link : {1, 2, 3}) EXPECT_FALSE(store->get(value_key(1, link), kSize)) << link;
  keep(*store, 1, 4);
  EXPECT_TRUE(fs::is_fifo(path_of(1)) && fs::is_directory(path_of(2)) && fs::is_symlink(path_of(3)));
}

TEST_F(ValueFolderTest, drops_the_ends_of_the_chains_used_least_recently) {
  const auto store = open(20 * kSize);
  for (const int chain : {1, 2, 3}) keep(*store, chain, 6);
  keep(*store, 1, 6);  // used again
  keep(*store, 4, 6);
  EXPECT_LE(bytes_in(texts_), 20 * kSize);
  EXPECT_EQ(whole_of(*store, 1, 6), 6U);
  EXPECT_EQ(whole_of(*store, 4, 6), 6U);
  EXPECT_LT(whole_of(*store, 2, 6), 6U);
  for (const int chain : {1, 2, 3, 4})
    EXPECT_EQ(held_of(*store, chain, 6), static_cast<int>(whole_of(*store, chain, 6))) << chain;
}

TEST_F(ValueFolderTest, drops_what_was_used_while_the_clock_was_ahead) {
  const auto store = open(10 * kSize);
  keep(*store, 1, 10);
  for (const auto& entry : fs::directory_iterator(texts_))
    fs::last_write_time(entry, fs::last_write_time(entry) + std::chrono::hours(24));
  keep(*store, 2, 6);
  EXPECT_EQ(whole_of(*store, 2, 6), 6U);
  EXPECT_LE(bytes_in(texts_), 10 * kSize);
}

TEST_F(ValueFolderTest, keeps_the_beginning_of_a_chain_that_does_not_fit) {
  const auto store = open(10 * kSize);
  keep(*store, 1, 30);
  EXPECT_EQ(whole_of(*store, 1, 30), 10U);
  keep(*store, 1, 30);
  EXPECT_EQ(whole_of(*store, 1, 30), 10U);
  EXPECT_LE(bytes_in(texts_), 10 * kSize);
}

TEST_F(ValueFolderTest, refuses_folders_with_other_files) {
  fs::create_directories(texts_);
  std::ofstream(texts_ + "/thesis.txt") << "mine";
  EXPECT_EQ(usage_error([&] { open(); }),
            "cannot keep texts in " + texts_ + ": it has other files (thesis.txt); name an empty folder");
  EXPECT_EQ(bytes_in(texts_), 4U);
  fs::rename(texts_ + "/thesis.txt", texts_ + "/winnow-texts-9");
  EXPECT_EQ(
      usage_error([&] { open(); }),
      "cannot keep texts in " + texts_ + ": it has the format winnow-texts-9, and this program reads winnow-texts-1");
}

TEST_F(ValueFolderTest, does_not_touch_what_others_put_there_later) {
  const auto store = open(3 * kSize);
  const std::string other(32, 'g');
  for (const auto& name : {std::string("notes"), other + ".text", std::string(31, 'a') + ".text"})
    std::ofstream(texts_ + "/" + name) << "mine";
  for (int chain = 0; chain < 5; ++chain) keep(*store, chain, 3);
  open(0);
  for (const auto& name : {std::string("notes"), other + ".text", std::string(31, 'a') + ".text"})
    EXPECT_EQ(fs::file_size(texts_ + "/" + name), 4U) << name;
}

TEST_F(ValueFolderTest, says_when_it_cannot_be_written) {
  const auto store = open();
  fs::remove_all(texts_);
  EXPECT_EQ(message_of<StoreError>([&] { keep(*store, 1, 1); }),
            "cannot write the texts in " + texts_ + ": No such file or directory");
  EXPECT_EQ(whole_of(*store, 1, 1), 0U);
}

TEST_F(ValueFolderTest, leaves_nothing_of_a_value_that_could_not_be_written) {
  const auto store = open();
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit most{kSize / 2, kSize / 2};
    setrlimit(RLIMIT_FSIZE, &most);
    const auto message = message_of<StoreError>([&] { keep(*store, 1, 3); });
    _exit(message == "cannot write the texts in " + texts_ + ": File too large" ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(bytes_in(texts_), 0U);
}

/// Runs work in a process that is killed after a random time.
void kill_while(const std::function<void()>& work, std::mt19937& random) {
  const pid_t child = fork();
  if (child == 0) {
    work();
    _exit(0);
  }
  std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

/// Number of processes to kill, which a manual run can raise.
int kills() {
  const char* const number = std::getenv("WINNOW_KILLS");
  return number == nullptr ? 8 : std::atoi(number);
}

TEST_F(ValueFolderTest, has_whole_values_after_kills) {
  std::mt19937 random(7);
  open();
  constexpr int kChains = 40;
  constexpr int kLinks = 10;
  for (int i = 0; i < kills(); ++i) {
    kill_while(
        [&] {
          const auto store = open(150 * kSize);
          for (int chain = i; true; ++chain) keep(*store, chain % kChains, kLinks);
        },
        random);
    const auto store = open();
    for (int chain = 0; chain < kChains; ++chain) EXPECT_TRUE(are_whole(*store, chain, kLinks)) << i << " " << chain;
  }
}

TEST_F(ValueFolderTest, may_be_written_by_two_processes) {
  open();
  constexpr int kChains = 30;
  constexpr int kLinks = 8;
  constexpr std::size_t kMost = 100 * kSize;
  const pid_t child = fork();
  const auto store = open(kMost);
  for (int i = 0; i < 2 * kChains; ++i) {
    const int chain = child == 0 ? i % kChains : (2 * kChains - i) % kChains;
    keep(*store, chain, kLinks);
    if (!are_whole(*store, chain, kLinks)) {
      if (child == 0) _exit(1);
      ADD_FAILURE() << chain;
    }
  }
  if (child == 0) _exit(0);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_LE(bytes_in(texts_), kMost + kMost / 10);
  EXPECT_GT(bytes_in(texts_), kMost / 2);
}

class RedisValuesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!RedisServer::is_installed()) GTEST_SKIP() << "redis-server is not installed";
    redis_.emplace();
  }
  std::unique_ptr<Values> open() const { return store::open_values({redis_->url(), "texts"}, 0); }
  std::optional<RedisServer> redis_;
};

TEST_F(RedisValuesTest, has_what_another_process_kept) {
  keep(*open(), 1, 5);
  const auto store = open();
  keep(*store, 1, 6);
  EXPECT_EQ(whole_of(*store, 1, 8), 6U);
  EXPECT_TRUE(are_whole(*store, 1, 6));
  EXPECT_TRUE(store->get(value_key(1, 0), kSize - 1)->parts.empty());
  store->erase(value_key(1, 3));
  EXPECT_EQ(whole_of(*store, 1, 8), 3U);
  EXPECT_EQ(held_of(*store, 1, 8), 5);
  EXPECT_FALSE(store->get(value_key(1, 3), kSize));
}

TEST_F(RedisValuesTest, says_that_the_server_is_gone_and_finds_it_again) {
  const auto store = open();
  keep(*store, 1, 2);
  redis_->stop();
  EXPECT_NE(message_of<StoreError>([&] { keep(*store, 1, 3); }), "");
  EXPECT_NE(message_of<StoreError>([&] { whole_of(*store, 1, 3); }), "");
  redis_->start();
  keep(*store, 2, 3);
  EXPECT_EQ(whole_of(*store, 1, 3), 0U);
  EXPECT_TRUE(are_whole(*store, 2, 3));
  EXPECT_EQ(whole_of(*store, 2, 3), 3U);
}

TEST(Values, are_in_folders_or_on_servers) {
  EXPECT_TRUE(store::is_folder({"redis", "texts"}));
  EXPECT_FALSE(store::is_folder({"redis://127.0.0.1", "texts"}));
  EXPECT_FALSE(store::is_folder({"rediss://127.0.0.1", "texts"}));
  EXPECT_NE(usage_error([] { store::is_folder({"http://127.0.0.1", "texts"}); }), "");
}

TEST_F(RedisValuesTest, need_no_server_to_begin_with) {
  redis_->stop();
  const auto store = open();
  EXPECT_NE(message_of<StoreError>([&] { whole_of(*store, 1, 3); }), "");
  redis_->start();
  EXPECT_EQ(whole_of(*store, 1, 3), 0U);
}

}  // namespace
}  // namespace winnow::test
