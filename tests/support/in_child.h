// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>

namespace winnow::test {

/// Text shared with a child process, which the parent can read even if the child crashes.
class SharedText {
 public:
  SharedText() : at_(mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0)) {
    if (at_ == MAP_FAILED) throw std::runtime_error("no memory to share with a child");
  }
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;
  ~SharedText() { munmap(at_, kSize); }

  void set(const std::string& text) {
    std::memset(at_, 0, kSize);
    std::memcpy(at_, text.data(), std::min(text.size(), kSize - 1));
  }
  std::string get() const { return static_cast<const char*>(at_); }

 private:
  static constexpr std::size_t kSize = 4096;
  void* at_;
};

/// Runs `work` in a child process and returns its failure: its result, its exception's message, or the signal that
/// killed it together with the last text in `doing`. Empty if nothing failed.
inline std::string failure_in_child(const std::function<std::string(SharedText& doing)>& work) {
  SharedText doing;
  SharedText failure;
  const pid_t child = fork();
  if (child == 0) {
    try {
      failure.set(work(doing));
    } catch (const std::exception& error) {
      failure.set(std::string("it throws: ") + error.what());
    }
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status))
    failure.set("signal " + std::to_string(WTERMSIG(status)));
  else if (WEXITSTATUS(status) != 0)
    failure.set("exit code " + std::to_string(WEXITSTATUS(status)));
  return failure.get().empty() ? "" : doing.get() + ": " + failure.get();
}

}  // namespace winnow::test
