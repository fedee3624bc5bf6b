// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <coroutine>
#include <exception>
#include <utility>

namespace winnow::documents {

/// Used as `co_yield kPause` in a function that returns Steps.
struct Pause {};
inline constexpr Pause kPause;

/// Return type of a coroutine whose work pauses, so that others may run in between. It starts with the first advance(),
/// and can be destroyed at any pause. Objects that the coroutine refers to must outlive it.
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

  /// Runs until the next pause or the end. Returns false when it has ended. Throws the coroutine's exceptions.
  bool advance() {
    handle_.resume();
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
    return !handle_.done();
  }

 private:
  Handle handle_;
};

}  // namespace winnow::documents
