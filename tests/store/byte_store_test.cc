// SPDX-License-Identifier: Apache-2.0
// Behaviour that all kinds of stores share.
#include "store/byte_store.h"

#include <gtest/gtest.h>

#include <thread>

#include "store/any_store.h"
#include "store/some_bytes.h"
#include "winnow/error.h"

namespace winnow::store {
namespace {

using test::add;
using test::bytes_of;
using test::key_of;
using test::pattern;
using test::text_of;

class ByteStoreTest : public test::AnyStoreTest {};
INSTANTIATE_TEST_SUITE_P(stores, ByteStoreTest, testing::Values("memory", "folder", "redis"), test::name_of_store);

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

TEST_P(ByteStoreTest, keeps_large_records) {
  const auto store = open();
  const auto put = [&](const std::string& key, std::size_t size, int seed) {
    store->change([&](Change& change) { change.put_record(key, pattern(size, seed)); });
  };
  put("n/large", 50'000, 1);
  put("n/small", 50, 2);
  EXPECT_EQ(open()->record("n/large"), pattern(50'000, 1));
  put("n/large", 60'000, 3);
  put("n/small", 70'000, 4);
  const Records expected{{"n/large", pattern(60'000, 3)}, {"n/small", pattern(70'000, 4)}};
  EXPECT_EQ(open()->records("n/"), expected);
  put("n/large", 10, 5);
  EXPECT_EQ(open()->record("n/large"), pattern(10, 5));
  store->change([](Change& change) { change.erase_record("n/small"); });
  EXPECT_EQ(open()->records("").size(), 1U);
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
  for (int i = 0; i < 1500; ++i) {  // more than a process may usually have open files
    if (i < 100) add(*store, key_of(i), pattern(5000, i));
    leases.push_back(*store->value(key_of(i % 100), std::span(&kWhole, 1)));
  }
  for (int i = 0; i < 1500; ++i) {
    const Bytes expected = pattern(5000, i % 100);
    ASSERT_TRUE(std::equal(expected.begin(), expected.end(), leases[i].parts.front().begin())) << i;
  }
}

}  // namespace
}  // namespace winnow::store
