// SPDX-License-Identifier: Apache-2.0
// Files written by LMDB are accepted; damaged ones are refused before LMDB reads them.
#include "store/lmdb_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>
#include <set>

#include "store/damaged_lmdb.h"
#include "store/lmdb_environment.h"
#include "support/damage.h"
#include "support/in_child.h"
#include "support/refusal.h"
#include "support/temp.h"

namespace winnow::store {
namespace {

/// Random steps: few and many entries, in leaves and on overflow pages, are added, erased and resized, while readers
/// hold earlier states.
class RandomSteps {
 public:
  RandomSteps(std::string folder, unsigned seed) : folder_(std::move(folder)), random_(seed) {}

  void make() {
    const auto store = open({folder_}, Missing::is_created);
    store->change([&](Change& change) {
      for (unsigned i = 0, n = below(30); i < n; ++i) add(change);
      for (unsigned i = 0, n = below(2) * below(60); i < n; ++i) erase(change);
      for (unsigned i = 0, n = below(60); i < n; ++i) change_record(change);
    });
    if (!values_.empty() && below(3) == 0) leases_.push_back(*store->value(*values_.begin(), std::span(&kWhole, 1)));
    if (leases_.size() > below(4)) leases_.pop_front();
  }

 private:
  unsigned below(unsigned n) { return random_() % n; }
  void add(Change& change) {
    const std::string key = test::key_of(next_++);
    const Bytes value(below(3) == 0 ? below(100'000) + 1 : below(3000) + 1, std::byte{7});
    change.add_value(key, value.size(), [&](ByteSink& to) { to.write(value); });
    values_.insert(key);
  }
  void erase(Change& change) {
    if (values_.empty()) return;
    const auto it = std::next(values_.begin(), below(static_cast<unsigned>(values_.size())));
    change.erase_value(*it);
    values_.erase(it);
  }
  void change_record(Change& change) {
    const std::string key = "n/" + std::string(below(40) + 1, static_cast<char>('a' + below(26)));
    if (below(3) == 0) return change.erase_record(key);
    change.put_record(key, Bytes(below(8) == 0 ? below(9000) : below(300), std::byte{1}));
  }

  std::string folder_;
  std::mt19937 random_;
  int next_ = 0;
  std::set<std::string> values_;
  std::deque<Lease> leases_;
};

TEST(LmdbCheckTest, accepts_whatever_lmdb_writes) {
  for (unsigned seed = 1; seed <= 3; ++seed) {
    const test::TempFolder folder(test::memory_folder());
    RandomSteps steps(folder / "store", seed);
    for (int i = 0; i < 60; ++i) {
      steps.make();
      const auto environment = LmdbEnvironment::open({folder / "store"}, Missing::is_an_error);
      ASSERT_NO_THROW(environment->check_last_step(LmdbPages::of_values_too)) << "seed " << seed << ", step " << i;
    }
  }
}

/// Changes keys in the pages of a store of two records and two values, and returns the check's error.
std::string refusal_with(const std::string& key, const std::string& changed) {
  const test::TempFolder folder(test::memory_folder());
  open({folder / "store"}, Missing::is_created)->change([](Change& change) {
    for (const char* record : {"n/a", "n/b"}) change.put_record(record, Bytes(3, std::byte{7}));
    for (const char* value : {"0001", "0002"})
      change.add_value(value, 3, [](ByteSink& to) { to.write(Bytes(3, std::byte{7})); });
  });
  const test::StoreToDamage store(folder / "store");
  std::vector<test::Flip> flips;
  for (auto at = store.whole().find(key); at != std::string::npos; at = store.whole().find(key, at + 1)) {
    for (std::size_t i = 0; i < key.size(); ++i) {
      const int by = key[i] ^ changed[i];
      flips.push_back({at + i, static_cast<unsigned char>(by)});
    }
  }
  EXPECT_FALSE(flips.empty());
  store.damage(flips);
  return test::refusal([&] {
    LmdbEnvironment::open({store.folder()}, Missing::is_an_error)->check_last_step(LmdbPages::of_values_too);
  });
}

TEST(LmdbCheckTest, refuses_keys_of_a_page_that_do_not_rise) {
  EXPECT_EQ(refusal_with("n/b", "n/c"), "");
  EXPECT_EQ(refusal_with("0002", "0003"), "");
  for (const auto& [key, changed] : {std::pair("n/b", "n/a"), {"n/a", "n/b"}, {"n/b", "n/0"}, {"0002", "0001"}}) {
    EXPECT_NE(refusal_with(key, changed).find("has keys out of order"), std::string::npos) << key << " " << changed;
  }
}

TEST(LmdbCheckTest, no_byte_of_a_trees_page_leads_astray) {
  const test::TempFolder folder(test::memory_folder());
  test::make_some_store(folder / "store");
  const test::StoreToDamage store(folder / "store");
  const auto flips = store.flips(61);
  ASSERT_GT(flips.size(), 2000U);
  EXPECT_EQ(test::failure_in_child([&](test::SharedText& doing) {
              for (const auto& flip : flips) {
                doing.set(print(flip));
                store.damage({flip});
                test::use_some_store(store.folder());
              }
              return "";
            }),
            "");
}

}  // namespace
}  // namespace winnow::store
