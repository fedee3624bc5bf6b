// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <string>

#include "documents/archive.h"
#include "support/refusal.h"
#include "winnow/error.h"

namespace winnow::test {

/// Uses a store on a server in every way, in an order that does not depend on the answers of an intact server.
inline void use_archive_at(const std::string& url) {
  refusal([&] {
    const std::shared_ptr<store::ByteStore> bytes = store::open({url}, store::Missing::is_created);
    documents::Archive archive(bytes);
    refusal([&] { archive.list(); });
    refusal([&] { archive.verify({}); });
    refusal([&] { archive.open("plain")->read_all(0); });
    refusal([&] { archive.open("small")->read_all(0); });
    const store::ByteRange ranges[] = {{0, 10}, {5, 5}, {20, 1000}, store::kWhole};
    refusal([&] {
      const auto lease = bytes->value("0000", ranges);
      for (std::size_t i = 0; lease && i < lease->parts.size(); ++i) {
        if (lease->parts[i].size() != store::length_in(ranges[i], lease->size)) std::abort();
      }
    });
    int tries = 0;
    refusal([&] {
      bytes->change([&](store::Change& change) {
        if (++tries > 2) throw InputError("somebody else is always faster");
        change.put_record("n/x", {});
        change.erase_value("0000");
        change.add_value("0001", 3, [](ByteSink& to) { to.write(std::as_bytes(std::span("abc", 3))); });
      });
    });
    refusal([&] { archive.gc(0); });
  });
}

}  // namespace winnow::test
