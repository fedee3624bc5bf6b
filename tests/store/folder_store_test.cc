// SPDX-License-Identifier: Apache-2.0
// Stores in folders: what kills, damage, missing permission and files of others do to them.
#include <gtest/gtest.h>
#include <signal.h>
#include <spdlog/fmt/fmt.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "store/byte_store.h"
#include "store/some_bytes.h"
#include "support/damage.h"
#include "support/in_child.h"
#include "support/refusal.h"
#include "support/temp.h"
#include "winnow/store_error.h"

namespace winnow::store {
namespace {

namespace fs = std::filesystem;
using test::add;
using test::bytes_of;
using test::key_of;
using test::pattern;
using test::refusal;
using test::text_of;
using test::usage_error;

class FolderStoreTest : public testing::Test {
 protected:
  std::unique_ptr<ByteStore> open(Missing missing = Missing::is_created) const { return store::open({path_}, missing); }
  /// True if a value has exactly these bytes.
  static bool has(const ByteStore& store, const std::string& key, const Bytes& expected) {
    const auto lease = store.value(key, std::span(&kWhole, 1));
    return lease &&
           std::equal(expected.begin(), expected.end(), lease->parts.front().begin(), lease->parts.front().end());
  }
  std::vector<std::string> files() const {
    std::vector<std::string> out;
    for (const auto& [name, bytes] : test::files_in(path_)) out.push_back(name);
    return out;
  }

  test::TempFolder folder_{test::memory_folder()};
  std::string path_ = folder_ / "documents";
};

TEST_F(FolderStoreTest, has_a_file_for_each_value) {
  const auto store = open();
  add(*store, "0000", pattern(100'000, 1));
  EXPECT_EQ(files(), (std::vector<std::string>{"records", "values/0000.value", "winnow-store-1"}));
  store->change([](Change& change) { change.put_record("n/large", pattern(5000, 1)); });
  EXPECT_EQ(files().size(), 4U);
  store->change([](Change& change) {
    change.erase_value("0000");
    change.erase_record("n/large");
  });
  EXPECT_EQ(files(), (std::vector<std::string>{"records", "winnow-store-1"}));
}

TEST_F(FolderStoreTest, parts_of_values_are_aligned) {
  add(*open(), "0000", pattern(1000, 1));
  const std::vector<ByteRange> ranges{{3, 10}, {11, 400}, {500, 501}, {7, 900}};
  const auto lease = open()->value("0000", ranges);
  for (const auto& part : lease->parts) EXPECT_EQ(reinterpret_cast<std::uintptr_t>(part.data()) % 16, 0U);
}

TEST_F(FolderStoreTest, a_step_that_changes_nothing_writes_nothing) {
  const auto store = open();
  add(*store, "0000", pattern(100, 1));
  const auto records = path_ + "/records";
  const auto long_ago = fs::last_write_time(records) - std::chrono::hours(1);
  fs::last_write_time(records, long_ago);
  store->change([](Change& change) { EXPECT_FALSE(change.record("absent")); });
  EXPECT_EQ(fs::last_write_time(records), long_ago);
  add(*store, "0001", pattern(100, 2));
  EXPECT_NE(fs::last_write_time(records), long_ago);
}

TEST_F(FolderStoreTest, says_why_it_cannot_be_one) {
  EXPECT_NE(refusal([&] { open(Missing::is_an_error); }).find("there are no documents in " + path_), std::string::npos);
  EXPECT_FALSE(fs::exists(path_));

  std::ofstream(path_) << "a file";
  EXPECT_EQ(usage_error([&] { open(); }), "cannot keep documents in " + path_ + ": it is not a folder");
  EXPECT_EQ(usage_error([&] {
              store::open({path_, "sessions"}, Missing::is_created);
            }).find("cannot keep sessions in "),
            0U);
  fs::remove(path_);

  fs::create_directory(path_);
  std::ofstream(path_ + "/letter.txt") << "dear";
  EXPECT_NE(usage_error([&] { open(); }).find("it has other files (letter.txt)"), std::string::npos);
  EXPECT_EQ(files(), std::vector<std::string>{"letter.txt"});
  fs::rename(path_ + "/letter.txt", path_ + "/winnow-store-9");
  for (const auto missing : {Missing::is_an_error, Missing::is_created}) {
    EXPECT_NE(usage_error([&] {
                open(missing);
              }).find("it has the format winnow-store-9, and this program reads winnow-store-1"),
              std::string::npos);
  }
}

TEST_F(FolderStoreTest, refuses_and_leaves_stores_of_earlier_versions) {
  fs::create_directory(path_);
  std::ofstream(path_ + "/data.mdb") << std::string(10'000, 'x');
  std::ofstream(path_ + "/lock.mdb") << "y";
  const auto before = test::files_in(path_);
  for (const auto missing : {Missing::is_an_error, Missing::is_created}) {
    EXPECT_EQ(refusal([&] { open(missing); }),
              "the documents in " + path_ +
                  " (data.mdb) were stored by an earlier version, and this one cannot read them: name another folder, "
                  "and store them again");
  }
  EXPECT_EQ(test::files_in(path_), before);
}

int mode_of(const std::string& path) { return static_cast<int>(fs::status(path).permissions()); }

TEST_F(FolderStoreTest, nobody_else_may_read_what_is_made) {
  const auto before = umask(0);
  path_ = folder_ / "above/documents";
  add(*open(), "0000", pattern(100, 1));
  umask(before);
  for (const auto& made : {folder_ / "above", path_, path_ + "/values", path_ + "/parts"})
    EXPECT_EQ(mode_of(made), 0700) << made;
  for (const auto& file : files()) EXPECT_EQ(mode_of(path_ + "/" + file), 0600) << file;
}

TEST_F(FolderStoreTest, many_may_make_it_at_once) {
  std::vector<std::thread> threads;
  std::vector<std::string> keys;
  for (int i = 0; i < 8; ++i) keys.push_back(key_of(i));
  for (const auto& key : keys) threads.emplace_back([&] { add(*open(), key, pattern(100, 1)); });
  for (auto& thread : threads) thread.join();
  for (const auto& key : keys) EXPECT_TRUE(open()->value(key, {})) << key;
}

TEST_F(FolderStoreTest, a_damaged_file_of_records_is_refused) {
  const auto store = open();
  store->change([](Change& change) {
    for (int i = 0; i < 20; ++i) change.put_record("n/" + key_of(i), bytes_of("some bytes"));
  });
  add(*store, "0000", pattern(100, 1));
  const test::StoreToDamage damaged(path_);
  const auto& whole = damaged.whole().at("records");
  for (std::size_t size = 0; size < whole.size(); size += 1 + size / 20) {
    damaged.write("records", whole.substr(0, size));
    EXPECT_NE(refusal([&] { open(); }).find(path_ + "/records is damaged: "), std::string::npos) << size;
  }
  damaged.write("records", whole + "x");
  EXPECT_NE(refusal([&] { open(); }).find(fmt::format("it has {} bytes, expected", whole.size() + 1)),
            std::string::npos);
  const std::size_t index = whole.find("some bytes");
  for (std::size_t at = 0; at < index; ++at) {
    damaged.damage({"records", at, 4});
    EXPECT_NE(refusal([&] { open(); }).find(path_ + "/records is damaged: "), std::string::npos) << at;
  }
  damaged.repair();
  fs::remove(path_ + "/records");
  for (const auto missing : {Missing::is_an_error, Missing::is_created})
    EXPECT_EQ(refusal([&] { open(missing); }),
              "the documents in " + path_ + " are damaged: the file of records is missing");
}

TEST_F(FolderStoreTest, a_record_whose_value_is_missing_is_damaged) {
  open()->change([](Change& change) { change.put_record("n/large", pattern(5000, 1)); });
  for (const auto& entry : fs::directory_iterator(path_ + "/values")) fs::remove(entry);
  const auto expected = "the documents in " + path_ + " are damaged: a record's value is missing";
  EXPECT_EQ(refusal([&] { open()->record("n/large"); }), expected);
  EXPECT_EQ(refusal([&] { open()->records(""); }), expected);
  open()->change([](Change& change) { change.erase_record("n/large"); });
  EXPECT_TRUE(open()->records("").empty());
}

TEST_F(FolderStoreTest, a_step_whose_process_was_killed_is_finished_by_the_next) {
  add(*open(), "0000", pattern(100, 1));
  open()->change([](Change& change) {  // moves a value
    change.erase_value("0000");
    change.add_value("0001", 100, [](ByteSink& to) { to.write(pattern(100, 2)); });
  });
  fs::rename(path_ + "/values/0001.value", path_ + "/parts/0001.part");
  std::ofstream(path_ + "/values/0000.value") << "not yet removed";
  std::ofstream(path_ + "/parts/0002.part") << "of a step that did not happen";
  std::ofstream(path_ + "/records.part") << "likewise";
  std::ofstream(path_ + "/parts/letter.txt") << "mine";
  std::ofstream(path_ + "/parts/Letter.part") << "mine";

  EXPECT_TRUE(has(*open(), "0001", pattern(100, 2)));
  EXPECT_FALSE(open()->value("0002", {}));
  open()->change([](Change& change) { change.put_record("n/a", {}); });
  EXPECT_TRUE(has(*open(), "0001", pattern(100, 2)));
  EXPECT_EQ(files(), (std::vector<std::string>{"parts/Letter.part", "parts/letter.txt", "records", "values/0001.value",
                                               "winnow-store-1"}));
}

/// Adds, replaces and erases records with values until it is killed.
void make_steps(ByteStore& store, unsigned seed) {
  std::mt19937 random(seed);
  for (;;) {
    store.change([&](Change& change) {
      const std::string name = "n/" + std::to_string(random() % 5);
      if (const auto old = change.record(name)) change.erase_value(text_of(*old).substr(0, 8));
      if (random() % 3 == 0) return change.erase_record(name);
      const std::string key = fmt::format("{:08x}", random());
      const auto bytes = pattern(200'000, static_cast<int>(random() % 100));
      change.add_value(key, bytes.size(), [&](ByteSink& to) { to.write(bytes); });
      Bytes record = bytes_of(key);
      record.insert(record.end(), bytes.begin(), bytes.begin() + (random() % 2 == 0 ? 100 : 3000));
      change.put_record(name, record);
    });
  }
}

/// Expects that each record's value is whole, and that there are no other values.
void expect_whole(ByteStore& store, const std::string& folder) {
  std::size_t expected = 0;
  for (const auto& [name, record] : store.records("n/")) {
    const auto lease = store.value(text_of(record).substr(0, 8), std::span(&kWhole, 1));
    ASSERT_TRUE(lease) << name;
    ASSERT_EQ(lease->size, 200'000U) << name;
    ASSERT_TRUE(std::equal(record.begin() + 8, record.end(), lease->parts.front().begin())) << name;
    expected += record.size() > 1000 ? 2 : 1;
  }
  const auto files = test::files_in(folder);
  const auto count = [&](const std::string& under) {
    return std::count_if(files.begin(), files.end(), [&](const auto& file) { return file.first.starts_with(under); });
  };
  EXPECT_EQ(static_cast<std::size_t>(count("values/")), expected);
  EXPECT_EQ(count("parts/"), 0);
}

/// Number of processes to kill, which a manual run can raise.
int kills() {
  const char* const number = std::getenv("WINNOW_KILLS");
  return number == nullptr ? 8 : std::atoi(number);
}

TEST_F(FolderStoreTest, a_value_that_cannot_be_moved_is_not_lost) {
  const auto store = open();
  const auto in_the_way = path_ + "/values/0000.value";
  fs::create_directories(in_the_way + "/full");
  add(*store, "0000", pattern(100, 1));
  for (int i = 0; i < 2; ++i) EXPECT_NE(refusal([&] { add(*store, "0001", pattern(100, 2)); }), "");
  fs::remove_all(in_the_way);
  add(*store, "0001", pattern(100, 2));
  EXPECT_TRUE(has(*open(), "0000", pattern(100, 1)));
  EXPECT_TRUE(has(*open(), "0001", pattern(100, 2)));
}

TEST_F(FolderStoreTest, is_whole_after_kills) {
  std::mt19937 random(3);
  open();
  for (int i = 0; i < kills(); ++i) {
    std::vector<pid_t> children;
    for (unsigned child = 0; child < 2; ++child) {
      children.push_back(fork());
      if (children.back() == 0) make_steps(*open(), random() + child);
    }
    for (const auto child : children) {
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 30'000));
      kill(child, SIGKILL);
      waitpid(child, nullptr, 0);
    }
    const auto store = open();
    store->change([](Change& change) { change.put_record("another", {}); });
    expect_whole(*store, path_);
  }
}

TEST_F(FolderStoreTest, readers_see_whole_steps_of_other_processes) {
  open();
  const pid_t child = fork();
  if (child == 0) {
    const auto store = open();
    for (int i = 0;; ++i) {
      store->change([&](Change& change) {
        change.put_record("n/a", pattern(10, i));
        change.put_record("n/b", pattern(2000, i));
      });
    }
  }
  const auto store = open();
  for (int i = 0; i < 300; ++i) {
    const auto all = store->records("n/");
    if (all.empty()) continue;
    ASSERT_EQ(all.size(), 2U);
    ASSERT_TRUE(std::equal(all.at("n/a").begin(), all.at("n/a").end(), all.at("n/b").begin()));
  }
  kill(child, SIGKILL);
  waitpid(child, nullptr, 0);
}

TEST_F(FolderStoreTest, keeps_what_it_has_if_files_may_not_grow) {
  add(*open(), "0000", pattern(100'000, 1));
  EXPECT_EQ(test::failure_in_child([&](test::SharedText&) -> std::string {
              signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1'000'000, 1'000'000};
              setrlimit(RLIMIT_FSIZE, &limit);
              const std::string why = refusal([&] { add(*open(), "0001", pattern(5'000'000, 2)); });
              if (why != "cannot add 4.8 MiB to the documents in " + path_ + ": File too large") return why;
              add(*open(), "0002", pattern(100'000, 3));
              return "";
            }),
            "");
  const auto store = open();
  EXPECT_TRUE(has(*store, "0000", pattern(100'000, 1)));
  EXPECT_FALSE(store->value("0001", {}));
  EXPECT_TRUE(has(*store, "0002", pattern(100'000, 3)));
  EXPECT_EQ(files().size(), 4U);
}

TEST_F(FolderStoreTest, a_store_that_cannot_be_written_is_read) {
  constexpr uid_t kNobody = 65534;
  fs::permissions(folder_.path(), fs::perms::all);
  add(*open(), "0000", pattern(1000, 1));
  std::vector<std::string> all{path_, path_ + "/values", path_ + "/parts"};
  for (const auto& file : files()) all.push_back(path_ + "/" + file);
  for (const auto& path : all) {
    ASSERT_TRUE(geteuid() != 0 || chown(path.c_str(), kNobody, kNobody) == 0);
    fs::permissions(path, fs::perms::owner_write, fs::perm_options::remove);
  }
  EXPECT_EQ(test::failure_in_child([&](test::SharedText&) -> std::string {
              if (geteuid() == 0 && setuid(kNobody) != 0) return "cannot become nobody";
              const auto store = open(Missing::is_an_error);
              if (!has(*store, "0000", pattern(1000, 1))) return "it is not read";
              const auto why = refusal([&] { add(*store, "0001", pattern(10, 2)); });
              return why == "cannot change the documents in " + path_ + ": Permission denied" ? "" : why;
            }),
            "");
  for (const auto& path : all) fs::permissions(path, fs::perms::owner_write, fs::perm_options::add);
}

TEST_F(FolderStoreTest, stays_open_when_the_process_changes_its_folder) {
  const auto before = fs::current_path();
  fs::current_path(folder_.path());
  const auto store = store::open({"documents"}, Missing::is_created);
  fs::current_path(before);
  add(*store, "0000", pattern(1000, 1));
  EXPECT_TRUE(has(*open(Missing::is_an_error), "0000", pattern(1000, 1)));
}

}  // namespace
}  // namespace winnow::store
