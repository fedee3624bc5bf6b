// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace winnow::device::emulated {

/// A function on a stack of its own, which ends at a guard page. Only the first switch to it makes a system call,
/// whereas swapcontext() makes one each time.
class Fiber {
 public:
  /// Stands for the code that runs now, on its own stack.
  Fiber() = default;
  /// REQUIRES: `function` never returns.
  explicit Fiber(void (*function)());
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Leaves this fiber, which is running, and begins the other one or continues where it was left. Returns when
  /// somebody switches back.
  void switch_to(Fiber& other);

 private:
  void go_on();

  void (*to_begin_)() = nullptr;
  std::byte* stack_ = nullptr;
  void* place_[5] = {};  ///< of __builtin_setjmp
};

}  // namespace winnow::device::emulated
