// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace winnow::server {

/// Counts what all connections hold together of one kind, up to a limit. Thread-safe.
class ByteAccount {
 public:
  explicit ByteAccount(std::size_t most) : most_(most) {}

  /// Adds bytes where they fit, or where nothing else is held; whether they were added.
  bool add(std::size_t bytes);
  void remove(std::size_t bytes) { held_ -= bytes; }

  std::size_t most() const { return most_; }
  std::size_t held() const { return held_; }
  /// The most that were ever held.
  std::size_t peak() const { return peak_; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> peak_{0};
};

/// The bytes that one owner holds of an account, for as long as it lives.
class ByteShare {
 public:
  explicit ByteShare(std::shared_ptr<ByteAccount> account) : account_(std::move(account)) {}
  ByteShare(ByteShare&&) noexcept = default;
  ByteShare(const ByteShare&) = delete;
  ByteShare& operator=(const ByteShare&) = delete;
  ByteShare& operator=(ByteShare&&) = delete;
  ~ByteShare() {
    if (account_) account_->remove(bytes_);
  }

  /// Holds at least so many from now on; false where they do not fit, and then nothing changes.
  bool grow_to(std::size_t bytes);

 private:
  std::shared_ptr<ByteAccount> account_;
  std::size_t bytes_ = 0;
};

}  // namespace winnow::server
