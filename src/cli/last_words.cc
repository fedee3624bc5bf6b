// SPDX-License-Identifier: Apache-2.0
#include "cli/last_words.h"

#include <ggml.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <new>

#include "base/mapped_range.h"

namespace winnow::cli {

namespace {

/// Writes one line and ends the process. Safe in a signal handler, in several threads at once (the first one writes),
/// and without free memory.
[[noreturn]] void end_with(std::initializer_list<const char*> words) {
  static std::atomic<bool> is_said{false};
  while (is_said.exchange(true)) pause();
  for (const char* const word : words) {
    if (write(STDERR_FILENO, word, std::strlen(word)) < 0) break;
  }
  _exit(EXIT_FAILURE);
}

void on_lost_page(int signal, siginfo_t* info, void* /*context*/) {
  const char* const file = mapped_at(info->si_addr);
  if (file != nullptr)
    end_with({"winnow: ", file, " can no longer be read: it was truncated while in use, or its disk fails\n"});
  std::signal(signal, SIG_DFL);  // not in a mapped file: the same read raises it again
}

/// `message` begins with the path of a ggml source file and ':'.
void on_ggml_abort(const char* message) {
  const char* file = message;
  for (const char* at = message; *at != '\0' && *at != ':'; ++at) {
    if (*at == '/') file = at + 1;
  }
  end_with({"winnow: ggml cannot continue, most likely for lack of memory: ", file, "\n"});
}

void on_terminate() {
  try {
    if (std::current_exception()) std::rethrow_exception(std::current_exception());
  } catch (const std::bad_alloc&) {
    end_with({"winnow: out of memory\n"});
  } catch (const std::exception& error) {
    end_with({"winnow: ", error.what(), "\n"});
  } catch (...) {
  }
  end_with({"winnow: an unexpected error\n"});
}

}  // namespace

void install_last_words() {
  struct sigaction action {};
  action.sa_sigaction = on_lost_page;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGBUS, &action, nullptr);
  ggml_set_abort_callback(on_ggml_abort);
  std::set_terminate(on_terminate);
}

}  // namespace winnow::cli
