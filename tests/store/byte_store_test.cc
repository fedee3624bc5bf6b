// SPDX-License-Identifier: Apache-2.0
// Behaviour that all kinds of stores share, and errors of stores that cannot be used.
#include "store/byte_store.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <thread>

#include "store/any_store.h"
#include "store/some_bytes.h"
#include "support/in_child.h"
#include "support/refusal.h"
#include "winnow/error.h"

namespace winnow::store {
namespace {

using test::add;
using test::bytes_of;
using test::key_of;
using test::pattern;
using test::refusal;
using test::text_of;

class ByteStoreTest : public test::AnyStoreTest {};
INSTANTIATE_TEST_SUITE_P(stores, ByteStoreTest, testing::Values("memory", "lmdb", "redis"), test::name_of_store);

TEST_P(ByteStoreTest, keeps_records_in_order_of_their_keys) {
  const auto store = open();
  store->change([](Change& change) {
    change.put_record("n/b", bytes_of("2"));
    change.put_record("n/a", bytes_of(std::string("1\0\n1", 4)));
    change.put_record("c/a", bytes_of("3"));
    change.put_record("n", bytes_of(""));
  });
  const auto some = open()->records("n/");
  ASSERT_EQ(some.size(), 2U);
  EXPECT_EQ(some.begin()->first, "n/a");
  EXPECT_EQ(text_of(some.at("n/a")), std::string("1\0\n1", 4));
  EXPECT_EQ(open()->records("").size(), 4U);
  EXPECT_EQ(text_of(*open()->record("c/a")), "3");
  EXPECT_EQ(text_of(*open()->record("n")), "");
  EXPECT_FALSE(open()->record("c/b"));
  EXPECT_TRUE(open()->records("x").empty());
}

TEST_P(ByteStoreTest, a_step_sees_what_it_has_done_itself) {
  const auto store = open();
  store->change([](Change& change) { change.put_record("n/a", bytes_of("old")); });
  store->change([](Change& change) {
    change.put_record("n/b", bytes_of("new"));
    change.erase_record("n/a");
    EXPECT_EQ(text_of(change.record("n/b").value()), "new");
    EXPECT_FALSE(change.record("n/a"));
    EXPECT_EQ(change.records("n/").size(), 1U);
  });
  EXPECT_EQ(open()->records("").size(), 1U);
}

TEST_P(ByteStoreTest, a_step_that_throws_has_not_happened) {
  const auto store = open();
  EXPECT_THROW(store->change([](Change& change) {
    change.put_record("n/a", bytes_of("1"));
    change.add_value("0000", 3, [](ByteSink& to) { to.write(bytes_of("abc")); });
    throw InputError("no");
  }),
               InputError);
  EXPECT_TRUE(open()->records("").empty());
  EXPECT_FALSE(open()->value("0000", {}));
}

TEST_P(ByteStoreTest, gives_parts_of_values) {
  const Bytes value = pattern(9'000'001, 1);  // more than one piece of a transfer to a server
  add(*open(), "0000", value);
  const std::vector<ByteRange> ranges{{0, 1}, {4096, 8192}, {8'999'999, 9'500'000}, {5, 5}, {10'000'000, 10'000'001},
                                      kWhole};
  const auto lease = open()->value("0000", ranges);
  ASSERT_TRUE(lease);
  EXPECT_EQ(lease->size, value.size());
  ASSERT_EQ(lease->parts.size(), ranges.size());
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    const auto begin = std::min(ranges[i].begin, value.size());
    const auto end = std::max(begin, std::min(ranges[i].end, value.size()));
    const auto& part = lease->parts[i];
    EXPECT_TRUE(std::equal(part.begin(), part.end(), value.begin() + static_cast<std::ptrdiff_t>(begin),
                           value.begin() + static_cast<std::ptrdiff_t>(end)))
        << i;
  }
  EXPECT_FALSE(open()->value("0001", ranges));
}

TEST_P(ByteStoreTest, a_lease_outlives_its_value_and_its_store) {
  const Bytes value = pattern(100'000, 2);
  add(*open(), "0000", value);
  auto lease = open()->value("0000", std::span(&kWhole, 1));
  open()->change([](Change& change) { change.erase_value("0000"); });
  for (int i = 0; i < 10; ++i)
    add(*open(), "000" + std::to_string(i) + "11", pattern(100'000, 10 + i));  // would reuse the freed space
  EXPECT_FALSE(open()->value("0000", {}));
  EXPECT_TRUE(std::equal(value.begin(), value.end(), lease->parts.front().begin()));
}

TEST_P(ByteStoreTest, steps_of_many_threads_are_done_one_after_another) {
  constexpr int kThreads = 8;
  constexpr int kSteps = 25;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, store = open()] {
      for (int i = 0; i < kSteps; ++i) {
        store->change([&](Change& change) {
          const auto count = change.record("count");
          const int before = count ? std::stoi(text_of(*count)) : 0;
          change.put_record("count", bytes_of(std::to_string(before + 1)));
        });
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(text_of(*open()->record("count")), std::to_string(kThreads * kSteps));
}

TEST_P(ByteStoreTest, many_leases_at_once) {
  const auto store = open();
  std::vector<Lease> leases;
  for (int i = 0; i < 1500; ++i) {  // more than LMDB's limit of readers
    if (i < 100) add(*store, key_of(i), pattern(5000, i));
    leases.push_back(*store->value(key_of(i % 100), std::span(&kWhole, 1)));
  }
  for (int i = 0; i < 1500; ++i) {
    const Bytes expected = pattern(5000, i % 100);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), leases[i].parts.front().begin())) << i;
  }
}

class FolderTest : public testing::Test {
 protected:
  std::unique_ptr<ByteStore> open(Missing missing = Missing::is_created) const { return store::open({path_}, missing); }

  test::TempFolder folder_;
  std::string path_ = folder_ / "documents";
};

TEST_F(FolderTest, values_are_read_in_place) {
  add(*open(), "0000", pattern(100'000, 1));
  const auto store = open();
  const auto one = store->value("0000", std::span(&kWhole, 1));
  const auto other = store->value("0000", std::span(&kWhole, 1));
  EXPECT_EQ(one->parts.front().data(), other->parts.front().data());
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(one->parts.front().data()) % 16, 0U);
}

TEST_F(FolderTest, says_why_it_cannot_be_one) {
  EXPECT_NE(refusal([&] { open(Missing::is_an_error); }).find("there are no documents in " + path_), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(path_));

  std::ofstream(path_) << "a file";
  EXPECT_NE(refusal([&] { open(); }).find("it is not a folder"), std::string::npos);
  EXPECT_EQ(refusal([&] {
              store::open({path_, "sessions"}, Missing::is_created);
            }).find("cannot keep sessions in "),
            0U);
  std::filesystem::remove(path_);

  std::filesystem::create_directory(path_);
  std::ofstream(path_ + "/letter.txt") << "dear";
  EXPECT_NE(refusal([&] { open(); }).find("it has other files (letter.txt)"), std::string::npos);
  std::filesystem::remove(path_ + "/letter.txt");

  std::ofstream(path_ + "/data.mdb") << std::string(10'000, 'x');
  EXPECT_NE(refusal([&] { open(); }).find("was not made by winnow, or is damaged"), std::string::npos);
}

TEST_F(FolderTest, a_cut_file_is_refused) {
  add(*open(), "0000", pattern(1'000'000, 1));
  const auto size = std::filesystem::file_size(path_ + "/data.mdb");
  std::filesystem::resize_file(path_ + "/data.mdb", size / 2);
  EXPECT_NE(refusal([&] { open(); }).find("is truncated: it has " + std::to_string(size / 2)), std::string::npos)
      << refusal([&] { open(); });
}

int mode_of(const std::string& path) { return static_cast<int>(std::filesystem::status(path).permissions()); }

TEST_F(FolderTest, nobody_else_may_read_what_is_made) {
  const auto before = umask(0);
  path_ = folder_ / "above/documents";
  add(*open(), "0000", pattern(100, 1));
  umask(before);
  EXPECT_EQ(mode_of(folder_ / "above"), 0700);
  EXPECT_EQ(mode_of(path_), 0700);
  EXPECT_EQ(mode_of(path_ + "/data.mdb"), 0600);
  EXPECT_EQ(mode_of(path_ + "/lock.mdb"), 0600);
}

TEST_F(FolderTest, a_file_of_no_bytes_is_damaged) {
  add(*open(), "0000", pattern(100, 1));
  std::filesystem::resize_file(path_ + "/data.mdb", 0);
  for (const auto missing : {Missing::is_an_error, Missing::is_created}) {
    EXPECT_NE(refusal([&] { open(missing); }).find("data.mdb was not made by winnow, or is damaged: it has 0 bytes"),
              std::string::npos);
  }
}

TEST_F(FolderTest, a_store_that_was_not_made_to_its_end_is_made_anew) {
  std::filesystem::create_directories(path_ + "/new.mdb");
  std::ofstream(path_ + "/new.mdb/data.mdb") << "half";
  EXPECT_NE(refusal([&] { open(Missing::is_an_error); }).find("there are no documents"), std::string::npos);
  add(*open(), "0000", pattern(100, 1));
  EXPECT_TRUE(open()->value("0000", {}));
  EXPECT_FALSE(std::filesystem::exists(path_ + "/new.mdb"));
}

TEST_F(FolderTest, many_may_make_it_at_once) {
  std::vector<std::thread> threads;
  std::vector<std::string> keys;
  for (int i = 0; i < 8; ++i) keys.push_back(key_of(i));
  for (const auto& key : keys) threads.emplace_back([&] { add(*open(), key, pattern(100, 1)); });
  for (auto& thread : threads) thread.join();
  for (const auto& key : keys) EXPECT_TRUE(open()->value(key, {})) << key;
}

TEST_F(FolderTest, works_with_little_address_space) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the sanitizer needs more itself";
#endif
  EXPECT_EQ(test::failure_in_child([&](test::SharedText&) {
              const rlimit limit{std::size_t{1} << 30U, std::size_t{1} << 30U};
              setrlimit(RLIMIT_AS, &limit);
              const Bytes value = pattern(1'000'000, 1);
              add(*open(), "0000", value);
              const auto lease = open()->value("0000", std::span(&kWhole, 1));
              return std::equal(value.begin(), value.end(), lease->parts.front().begin()) ? "" : "other bytes";
            }),
            "");
  EXPECT_TRUE(open()->value("0000", {}));
}

TEST_F(FolderTest, a_file_that_may_not_grow_keeps_what_it_has) {
  add(*open(), "0000", pattern(100'000, 1));
  EXPECT_EQ(test::failure_in_child([&](test::SharedText&) -> std::string {
              std::signal(SIGXFSZ, SIG_IGN);
              const rlimit limit{1'000'000, 1'000'000};
              setrlimit(RLIMIT_FSIZE, &limit);
              const std::string why = refusal([&] { add(*open(), "0001", pattern(5'000'000, 2)); });
              if (why.find("cannot add 4.8 MiB to the documents in " + path_) == std::string::npos) return why;
              add(*open(), "0002", pattern(100'000, 3));
              return "";
            }),
            "");
  const auto store = open();
  EXPECT_TRUE(store->value("0000", {}));
  EXPECT_FALSE(store->value("0001", {}));
  const auto lease = store->value("0002", std::span(&kWhole, 1));
  const Bytes expected = pattern(100'000, 3);
  EXPECT_TRUE(std::equal(expected.begin(), expected.end(), lease->parts.front().begin()));
}

TEST_F(FolderTest, what_is_erased_makes_room_for_the_next_value) {
  add(*open(), "0000", pattern(3'000'000, 1));
  const auto size = std::filesystem::file_size(path_ + "/data.mdb");
  for (int i = 1; i < 5; ++i) {
    open()->change([&](Change& change) { change.erase_value("000" + std::to_string(i - 1)); });
    add(*open(), "000" + std::to_string(i), pattern(3'000'000, i));
  }
  EXPECT_LT(std::filesystem::file_size(path_ + "/data.mdb"), size + 100'000);
}

TEST_F(FolderTest, a_store_that_cannot_be_written_is_read) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everything";
  add(*open(), "0000", pattern(1000, 1));
  std::filesystem::permissions(path_ + "/data.mdb", std::filesystem::perms::owner_read);
  const auto store = open();
  EXPECT_TRUE(store->value("0000", {}));
  EXPECT_NE(refusal([&] { add(*store, "0001", pattern(10, 2)); }).find("Permission denied"), std::string::npos);
}

}  // namespace
}  // namespace winnow::store
