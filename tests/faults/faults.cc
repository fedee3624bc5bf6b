// SPDX-License-Identifier: Apache-2.0
// A library for LD_PRELOAD: one call of one function fails, or kills the process as a power failure would.
//   WINNOW_FAULT=FUNCTION:N:WHAT   the N-th call (from 1) fails with the error number WHAT, or the process is killed
//                                  before it if WHAT is `kill`
//   WINNOW_FAULT_UNDER=FOLDER      counts only calls on files below it (malloc and thread: all calls)
//   WINNOW_FAULT_COUNT=FILE        gets the number of calls of each function when main returns
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

extern "C" void* __libc_malloc(size_t size);  // glibc's implementation

namespace {

enum Function { kOpen, kRead, kWrite, kSync, kRename, kTruncate, kMap, kThread, kMalloc, kFunctions };
constexpr std::array<const char*, kFunctions> kNames{"open",     "read", "write",  "sync",  "rename",
                                                     "truncate", "map",  "thread", "malloc"};

struct Plan {
  Plan() {
    if (const char* const folder = std::getenv("WINNOW_FAULT_UNDER")) under = folder;
    const char* const fault = std::getenv("WINNOW_FAULT");
    if (fault == nullptr) return;
    std::array<char, 16> name{};
    std::array<char, 16> what{};
    if (std::sscanf(fault, "%15[^:]:%ld:%15s", name.data(), &at, what.data()) != 3) std::abort();
    for (int f = 0; f < kFunctions; ++f) {
      if (std::strcmp(kNames[static_cast<size_t>(f)], name.data()) == 0) function = f;
    }
    error = std::atoi(what.data());  // 0 for kill
  }
  const char* under = "/";
  int function = -1;
  long at = 0;
  int error = 0;
};

std::array<std::atomic<long>, kFunctions> calls;
bool in_main = false;  // earlier failures could not be reported

const Plan& plan() {
  static const Plan one;
  return one;
}

bool is_under(const char* path) { return std::strncmp(path, plan().under, std::strlen(plan().under)) == 0; }
bool is_under(int fd) {
  std::array<char, 64> link{};
  std::array<char, 4096> path{};
  std::snprintf(link.data(), link.size(), "/proc/self/fd/%d", fd);
  return readlink(link.data(), path.data(), path.size() - 1) > 0 && is_under(path.data());
}

/// Counts a call. Returns true with errno set if the call must fail.
bool fails(Function function) {
  if (!in_main) return false;
  const long n = ++calls[function];
  if (plan().function != function || plan().at != n) return false;
  if (plan().error == 0) kill(getpid(), SIGKILL);
  errno = plan().error;
  return true;
}

template <class Call>
Call* real(const char* name) {
  return reinterpret_cast<Call*>(dlsym(RTLD_NEXT, name));
}

void write_counts() {
  const char* const path = std::getenv("WINNOW_FAULT_COUNT");
  if (path == nullptr) return;
  std::FILE* const file = std::fopen(path, "w");
  for (int f = 0; file != nullptr && f < kFunctions; ++f)
    std::fprintf(file, "%s %ld\n", kNames[static_cast<size_t>(f)], calls[static_cast<size_t>(f)].load());
  if (file != nullptr) std::fclose(file);
}

using Main = int(int, char**, char**);
Main* real_main = nullptr;

int watched_main(int argc, char** argv, char** environment) {
  plan();
  in_main = true;
  const int code = real_main(argc, argv, environment);
  in_main = false;
  write_counts();
  return code;
}

}  // namespace

extern "C" int __libc_start_main(Main* main, int argc, char** argv, void (*init)(), void (*fini)(), void (*loader)(),
                                 void* stack) {
  real_main = main;
  return real<int(Main*, int, char**, void (*)(), void (*)(), void (*)(), void*)>("__libc_start_main")(
      watched_main, argc, argv, init, fini, loader, stack);
}

// NAME(PARAMETERS) calls the real function with ARGUMENTS, or returns RESULT if the call must fail.
#define WINNOW_CALL(RETURN, NAME, PARAMETERS, ARGUMENTS, FUNCTION, ON, RESULT) \
  extern "C" RETURN NAME PARAMETERS {                                          \
    if (is_under(ON) && fails(FUNCTION)) return RESULT;                        \
    static auto* const next = real<RETURN PARAMETERS>(#NAME);                  \
    return next ARGUMENTS;                                                     \
  }

WINNOW_CALL(ssize_t, read, (int fd, void* to, size_t n), (fd, to, n), kRead, fd, -1)
WINNOW_CALL(ssize_t, pread, (int fd, void* to, size_t n, off_t at), (fd, to, n, at), kRead, fd, -1)
WINNOW_CALL(ssize_t, pread64, (int fd, void* to, size_t n, off64_t at), (fd, to, n, at), kRead, fd, -1)
WINNOW_CALL(size_t, fread, (void* to, size_t size, size_t n, FILE* file), (to, size, n, file), kRead, fileno(file), 0)
WINNOW_CALL(ssize_t, write, (int fd, const void* from, size_t n), (fd, from, n), kWrite, fd, -1)
WINNOW_CALL(ssize_t, writev, (int fd, const iovec* from, int n), (fd, from, n), kWrite, fd, -1)
WINNOW_CALL(ssize_t, pwrite, (int fd, const void* from, size_t n, off_t at), (fd, from, n, at), kWrite, fd, -1)
WINNOW_CALL(ssize_t, pwrite64, (int fd, const void* from, size_t n, off64_t at), (fd, from, n, at), kWrite, fd, -1)
WINNOW_CALL(ssize_t, pwritev, (int fd, const iovec* from, int n, off_t at), (fd, from, n, at), kWrite, fd, -1)
WINNOW_CALL(ssize_t, pwritev64, (int fd, const iovec* from, int n, off64_t at), (fd, from, n, at), kWrite, fd, -1)
WINNOW_CALL(size_t, fwrite, (const void* from, size_t size, size_t n, FILE* file), (from, size, n, file), kWrite,
            fileno(file), 0)
WINNOW_CALL(int, fflush, (FILE * file), (file), kWrite, fileno(file), EOF)
WINNOW_CALL(int, fsync, (int fd), (fd), kSync, fd, -1)
WINNOW_CALL(int, fdatasync, (int fd), (fd), kSync, fd, -1)
WINNOW_CALL(int, rename, (const char* from, const char* to), (from, to), kRename, to, -1)
WINNOW_CALL(int, ftruncate, (int fd, off_t size), (fd, size), kTruncate, fd, -1)
WINNOW_CALL(int, ftruncate64, (int fd, off64_t size), (fd, size), kTruncate, fd, -1)
WINNOW_CALL(FILE*, fopen, (const char* path, const char* mode), (path, mode), kOpen, path, nullptr)
WINNOW_CALL(FILE*, fopen64, (const char* path, const char* mode), (path, mode), kOpen, path, nullptr)
WINNOW_CALL(void*, mmap, (void* to, size_t size, int protection, int flags, int fd, off_t at),
            (to, size, protection, flags, fd, at), kMap, fd, MAP_FAILED)
WINNOW_CALL(void*, mmap64, (void* to, size_t size, int protection, int flags, int fd, off64_t at),
            (to, size, protection, flags, fd, at), kMap, fd, MAP_FAILED)

#define WINNOW_OPEN(NAME)                                              \
  extern "C" int NAME(const char* path, int flags, ...) {              \
    va_list rest;                                                      \
    va_start(rest, flags);                                             \
    const auto mode = va_arg(rest, mode_t);                            \
    va_end(rest);                                                      \
    if (is_under(path) && fails(kOpen)) return -1;                     \
    static auto* const next = real<int(const char*, int, ...)>(#NAME); \
    return next(path, flags, mode);                                    \
  }

WINNOW_OPEN(open)
WINNOW_OPEN(open64)

extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*), void* with) {
  if (fails(kThread)) return plan().error;
  static auto* const next = real<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)>("pthread_create");
  return next(thread, attributes, run, with);
}

extern "C" void* malloc(size_t size) { return fails(kMalloc) ? nullptr : __libc_malloc(size); }
