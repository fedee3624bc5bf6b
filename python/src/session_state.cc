// SPDX-License-Identifier: Apache-2.0
#include "session_state.h"

#include <utility>

namespace winnow::python {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds kBetweenLooks(20);  // short enough for Ctrl-C, and the GIL is seldom taken

}  // namespace

void handle_signals() {
  const nb::gil_scoped_acquire gil;
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
}

SessionState::SessionState(std::shared_ptr<const Model> model, const SessionOptions& options)
    : model_(std::move(model)), session_(model_, options) {
  session_.on_stop([this] { return should_stop(); });
}

SessionState::Turn::Turn(SessionState& state) : state_(state) {
  if (state.user_ == std::this_thread::get_id())
    throw UsageError("the session is busy: score() of a method cannot use it");
  while (!state.mutex_.try_lock_for(kBetweenLooks)) handle_signals();
  if (state.is_closed_) {
    state.mutex_.unlock();
    throw UsageError("the session is closed");
  }
  state.user_ = std::this_thread::get_id();
  state.stop_asked_ = false;
  state.raised_ = nullptr;
}

SessionState::Turn::~Turn() {
  state_.user_ = std::thread::id();
  state_.mutex_.unlock();
}

void SessionState::check_no_stream() const {
  if (is_streaming_) throw UsageError("the session is generating: read its stream to the end, or close it");
}

/// Called by threads of the session's team, too, which get no signals.
bool SessionState::should_stop() {
  if (stop_asked_) return true;
  if (user_ != std::this_thread::get_id()) return false;
  const auto now = std::chrono::steady_clock::now();
  if (now < looks_at_) return false;
  looks_at_ = now + kBetweenLooks;
  try {
    handle_signals();
  } catch (const nb::python_error&) {
    raised_ = std::current_exception();
    stop_asked_ = true;
  }
  return stop_asked_;
}

}  // namespace winnow::python
