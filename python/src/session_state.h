// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>

#include "bind.h"
#include "winnow/error.h"
#include "winnow/session.h"

namespace winnow::python {

/// Runs Python's handlers of pending signals. Throws their exceptions. Only the main thread has any.
void handle_signals();

/// A session, shared by threads. Calls run one after the other, each without the GIL. A signal with a Python handler,
/// such as Ctrl-C, stops the main thread's call.
class SessionState {
 public:
  SessionState(std::shared_ptr<const Model> model, const SessionOptions& options);

  /// Runs f(Session&) without the GIL, which the caller holds. Throws UsageError if the session is closed, is
  /// generating, or is in use by this thread; exceptions of Python's signal handlers; and f's exceptions.
  template <class F>
  auto call(const F& f) {
    const nb::gil_scoped_release nogil;
    const Turn turn(*this);
    check_no_stream();
    return run(f);
  }
  /// The same for the stream that is generating.
  template <class F>
  auto call_of_stream(const F& f) {
    const nb::gil_scoped_release nogil;
    const Turn turn(*this);
    return run(f);
  }
  /// The same for read-only calls, even while a stream is generating.
  template <class F>
  auto look(const F& f) {
    return call_of_stream(f);
  }

  /// Sets whether a stream is generating. REQUIRES: within a call.
  void set_streaming(bool is_streaming) { is_streaming_ = is_streaming; }
  /// Makes the running call end with Interrupted.
  void stop() { stop_asked_ = true; }
  /// Makes every later call throw UsageError. Memory is freed with the last cache.
  void close() { is_closed_ = true; }
  bool is_closed() const { return is_closed_; }
  const std::shared_ptr<const Model>& model() const { return model_; }

 private:
  /// Holds the session for this thread.
  class Turn {
   public:
    explicit Turn(SessionState& state);
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    ~Turn();

   private:
    SessionState& state_;
  };

  template <class F>
  auto run(const F& f) {
    try {
      return f(session_);
    } catch (const Interrupted&) {
      if (raised_) std::rethrow_exception(raised_);
      throw;
    }
  }
  void check_no_stream() const;
  bool should_stop();

  std::shared_ptr<const Model> model_;
  Session session_;
  std::timed_mutex mutex_;
  std::atomic<std::thread::id> user_;
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> stop_asked_ = false;
  bool is_streaming_ = false;                            ///< guarded by the mutex, like the next two
  std::chrono::steady_clock::time_point looks_at_ = {};  ///< next check for signals
  std::exception_ptr raised_;                            ///< exception of a signal handler in this call
};

}  // namespace winnow::python
