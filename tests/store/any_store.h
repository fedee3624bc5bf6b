// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "store/byte_store.h"
#include "store/redis_server.h"
#include "support/memory_store.h"
#include "support/temp.h"

namespace winnow::test {

/// Runs the same tests on each kind of store.
class AnyStoreTest : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (is("redis") && !RedisServer::is_installed())
      GTEST_SKIP() << "redis-server is not installed: the shared store is not tested";
    if (is("redis")) redis_.emplace();
    if (is("memory")) memory_ = open_memory();
  }
  bool is(const std::string& kind) const { return GetParam() == kind; }

  /// The same store at every call; reopened, if the kind of store can be.
  std::shared_ptr<store::ByteStore> open() {
    if (memory_ != nullptr) return memory_;
    return store::open({where()}, store::Missing::is_created);
  }
  std::string where() const { return redis_ ? redis_->url() : folder_ / "documents"; }

  TempFolder folder_;
  std::optional<RedisServer> redis_;
  std::shared_ptr<store::ByteStore> memory_;
};

inline std::string name_of_store(const testing::TestParamInfo<const char*>& info) { return info.param; }

}  // namespace winnow::test
