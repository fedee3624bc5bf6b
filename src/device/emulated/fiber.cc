// SPDX-License-Identifier: Apache-2.0
#include "device/emulated/fiber.h"

#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <new>
#include <utility>

// A switch is a call with a frame to come back to. Callers may not assume which registers it leaves alone, and
// sanitizers must not take it for the end of all calls.
#ifdef __clang__
#define WINNOW_SWITCH __attribute__((noinline, disable_tail_calls, no_sanitize("address", "thread")))
#else
#define WINNOW_SWITCH __attribute__((noipa, no_sanitize("address", "thread")))
#endif

namespace winnow::device::emulated {
namespace {

constexpr std::size_t kStack = std::size_t{96} << 10U;

std::size_t guard() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Fiber::Fiber(void (*function)()) : to_begin_(function) {
  void* const memory = mmap(nullptr, guard() + kStack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  stack_ = static_cast<std::byte*>(memory) + guard();  // it grows down
  if (mprotect(stack_, kStack, PROT_READ | PROT_WRITE) != 0) {
    munmap(memory, guard() + kStack);
    throw std::bad_alloc();
  }
}

Fiber::~Fiber() {
  if (stack_ != nullptr) munmap(stack_ - guard(), guard() + kStack);
}

WINNOW_SWITCH void Fiber::switch_to(Fiber& other) {
  if (__builtin_setjmp(place_) == 0) other.go_on();
}

WINNOW_SWITCH void Fiber::go_on() {
  if (to_begin_ == nullptr) __builtin_longjmp(place_, 1);
  ucontext_t context;
  getcontext(&context);
  context.uc_stack.ss_sp = stack_;
  context.uc_stack.ss_size = kStack;
  context.uc_link = nullptr;
  makecontext(&context, std::exchange(to_begin_, nullptr), 0);
  setcontext(&context);
}

}  // namespace winnow::device::emulated
