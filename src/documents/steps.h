// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace winnow::documents {

/// `co_yield kPause` in a function that returns Steps.
struct Pause {};
inline constexpr Pause kPause;

/// Work that pauses now and then, so that others may go on in between: what a coroutine returns. It begins with the
/// first advance(), and can be dropped at any pause. What the coroutine's references refer to outlives it.
class [[nodiscard]] Steps {
 public:
  struct promise_type;
  using Handle = std::coroutine_handle<promise_type>;
  struct promise_type {
    std::exception_ptr error;

    Steps get_return_object() { return Steps(Handle::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    std::suspend_always yield_value(Pause /*pause*/) noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Steps(Handle handle) : handle_(handle) {}
  Steps(Steps&& other) noexcept : handle_(std::exchange(other.handle_, {})) {}
  Steps& operator=(Steps&&) = delete;
  ~Steps() {
    if (handle_) handle_.destroy();
  }

  /// Goes on until the next pause, or the end. Returns false when it has ended. Throws what the coroutine throws.
  bool advance() {
    handle_.resume();
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return !handle_.done();
  }

 private:
  Handle handle_;
};

}  // namespace winnow::documents
