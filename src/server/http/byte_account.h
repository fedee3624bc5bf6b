// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <utility>

namespace winnow::server {

/// Counts the bytes of one kind that all connections hold, up to a limit. Thread-safe.
class ByteAccount {
 public:
  explicit ByteAccount(std::size_t most) : most_(most) {}

  /// Adds bytes if they fit or if nothing else is held. Returns whether they were added.
  bool add(std::size_t bytes);
  void remove(std::size_t bytes) { held_ -= bytes; }

  std::size_t most() const { return most_; }
  std::size_t held() const { return held_; }
  /// The most bytes that were ever held.
  std::size_t peak() const { return peak_; }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> held_{0};
  std::atomic<std::size_t> peak_{0};
};

/// The bytes of an account that one owner holds during its lifetime.
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

  /// Grows to at least `bytes`. Returns false, and changes nothing, if they do not fit.
  bool grow_to(std::size_t bytes);

 private:
  std::shared_ptr<ByteAccount> account_;
  std::size_t bytes_ = 0;
};

}  // namespace winnow::server
