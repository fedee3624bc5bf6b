#pragma once

#include <spdlog/fmt/fmt.h>

#include <cstddef>
#include <string>

#include "base/format.h"
#include "base/memory.h"
#include "engine/session_impl.h"
#include "winnow/error.h"

namespace winnow::multi {

/// While it lives, the session's stop function stops the executor even within a layer: what is being made then is thrown away.
class Stopping {
 public:
  explicit Stopping(Session::Impl& session) : session_(session) { session.executor.set_stop(session.stop); }
  Stopping(const Stopping&) = delete;
  Stopping& operator=(const Stopping&) = delete;
  ~Stopping() { session_.executor.set_stop({}); }

 private:
  Session::Impl& session_;
};

/// Throws MemoryError when so much memory is not there for `what`.
inline void check_memory(std::size_t bytes, const std::string& what) {
  if (bytes <= available_memory()) return;
  throw MemoryError(fmt::format("{} needs {}; {} are available", what, format_bytes(bytes), format_bytes(available_memory())), bytes);
}

}  // namespace winnow::multi
