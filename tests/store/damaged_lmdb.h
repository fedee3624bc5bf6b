// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <stdexcept>
#include <string>

#include "store/some_bytes.h"
#include "support/refusal.h"

namespace winnow::test {

inline constexpr int kSomeValues = 150;
inline constexpr int kSomeRecords = 30;
inline std::string record_key(int number) { return "n/" + std::to_string(number); }

/// Makes a store with trees of several levels, free pages, and records and values both in leaves and on overflow pages.
inline void make_some_store(const std::string& folder) {
  const auto store = store::open({folder}, store::Missing::is_created);
  store->change([](store::Change& change) {
    for (int i = 0; i < kSomeValues; ++i) {
      const auto value = pattern(i % 40 == 0 ? 9000 : 20, i);
      change.add_value(key_of(i), value.size(), [&](ByteSink& to) { to.write(value); });
    }
  });
  store->change([](store::Change& change) {
    for (int i = 0; i < kSomeValues; i += 7) change.erase_value(key_of(i));
    for (int i = 0; i < kSomeRecords; ++i) change.put_record(record_key(i), pattern(i == 5 ? 5000 : 200, i));
  });
}

/// The whole content of such a store.
inline std::map<std::string, store::Bytes> content_of(const std::string& folder) {
  const auto store = store::open({folder}, store::Missing::is_an_error);
  std::map<std::string, store::Bytes> out = store->records("");
  for (int i = 0; i < kSomeValues; ++i) {
    const auto lease = store->value(key_of(i), std::span(&store::kWhole, 1));
    if (lease) out.emplace(key_of(i), store::Bytes(lease->parts.front().begin(), lease->parts.front().end()));
  }
  return out;
}

/// Reads and changes such a store, possibly a damaged one. Throws std::runtime_error if a change harms data that it
/// does not touch.
inline void use_some_store(const std::string& folder) {
  std::map<std::string, store::Bytes> before;
  if (!refusal([&] { before = content_of(folder); }).empty()) return;
  const auto change = refusal([&] {
    store::open({folder}, store::Missing::is_an_error)->change([](store::Change& step) {
      for (int i = 0; i < kSomeValues; i += 3) step.erase_value(key_of(i));
      for (int i = 0; i < kSomeRecords; i += 3) step.erase_record(record_key(i));
      step.put_record(record_key(5), pattern(4, 1));
      step.add_value("9999", 50'000, [](ByteSink& to) { to.write(pattern(50'000, 9)); });
    });
  });
  std::map<std::string, store::Bytes> after;
  if (const auto why = refusal([&] { after = content_of(folder); }); !why.empty())
    throw std::runtime_error("after a change (" + change + "): " + why);
  if (change.empty()) {
    for (int i = 0; i < kSomeValues; i += 3) before.erase(key_of(i));
    for (int i = 0; i < kSomeRecords; i += 3) before.erase(record_key(i));
    before[record_key(5)] = pattern(4, 1);
  }
  if (before != after) throw std::runtime_error("a change has changed what it did not touch");
}

}  // namespace winnow::test
