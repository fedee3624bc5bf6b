// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <type_traits>
#include <vector>

#include "winnow/export.h"

namespace winnow {

class MemoryAccount;

/// The account that counts this thread's memory now; null if none does.
WINNOW_EXPORT MemoryAccount* current_account();
/// Adds bytes to an account, or subtracts them. Does nothing for null.
WINNOW_EXPORT void count_bytes(MemoryAccount* account, std::size_t bytes);
WINNOW_EXPORT void uncount_bytes(MemoryAccount* account, std::size_t bytes);

/// Reports to the account that was current when its container was made, wherever the container is freed. The account
/// must outlive the container.
template <class T>
class CountingAllocator {
 public:
  using value_type = T;
  using propagate_on_container_move_assignment = std::true_type;
  using propagate_on_container_swap = std::true_type;

  CountingAllocator() : account_(current_account()) {}
  template <class Other>
  explicit CountingAllocator(const CountingAllocator<Other>& other) : account_(other.account()) {}

  T* allocate(std::size_t n) {
    T* const out = std::allocator<T>().allocate(n);
    count_bytes(account_, n * sizeof(T));
    return out;
  }
  void deallocate(T* memory, std::size_t n) {
    std::allocator<T>().deallocate(memory, n);
    uncount_bytes(account_, n * sizeof(T));
  }
  /// A copy reports to the account that is current where it is made.
  CountingAllocator select_on_container_copy_construction() const { return {}; }
  MemoryAccount* account() const { return account_; }
  bool operator==(const CountingAllocator&) const = default;

 private:
  MemoryAccount* account_;
};

/// Vector whose bytes the session counts, for data of a method's parts that grow with the prompt.
template <class T>
using CountedVector = std::vector<T, CountingAllocator<T>>;

}  // namespace winnow
